//! A history with more images than the target takes loses the oldest in the request, and nowhere else.

use serde_json::{Value, json};

use super::{IMAGE, VENDORS, sent};

const NOTE: &str = "more images than the model takes";

fn images(messages: usize, each: usize) -> Vec<Value> {
    let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
    vec![json!({ "role": "user", "content": vec![image; each] }); messages]
}

#[tokio::test]
async fn every_api_gets_as_many_images_as_its_vendor_takes() {
    for (api, in_messages, left) in [
        ("openai-completions", (1501, 1), 1351),
        ("openai-responses", (1500, 1), 1500),
        ("azure-openai-responses", (51, 1), 46),
        ("anthropic-messages", (101, 1), 91),
        ("bedrock-converse-stream", (2, 21), 40),
        ("mistral-conversations", (1, 9), 8),
        ("google-generative-ai", (3601, 1), 3241),
        ("google-vertex", (3001, 1), 2701),
    ] {
        let target = VENDORS.iter().find(|vendor| vendor.api == api).unwrap();
        let body = sent(target, &["text", "image"], images(in_messages.0, in_messages.1)).await.to_string();
        assert_eq!(body.matches(IMAGE).count(), left, "{api}");
        let is_over = left < in_messages.0 * in_messages.1;
        assert_eq!(body.contains(NOTE), is_over, "{api}");
    }
}

#[tokio::test]
async fn an_image_of_more_bytes_than_an_api_takes_is_left_out() {
    for (api, most) in [
        ("anthropic-messages", 5 * 1024 * 1024),
        ("bedrock-converse-stream", 5_000_000),
        ("mistral-conversations", 13_333_336),
        ("google-vertex", 9_333_336),
    ] {
        let target = VENDORS.iter().find(|vendor| vendor.api == api).unwrap();
        for (bytes, is_sent) in [(most, true), (most + 4, false)] {
            let image = json!({ "type": "image", "data": "A".repeat(bytes), "mimeType": "image/png" });
            let message = json!({ "role": "user", "content": [{ "type": "text", "text": "q" }, image] });
            let body = sent(target, &["text", "image"], vec![message]).await.to_string();
            assert_eq!(body.contains("larger than the model takes"), !is_sent, "{api} {bytes}");
            assert_eq!(body.len() > bytes, is_sent, "{api} {bytes}");
        }
    }
}
