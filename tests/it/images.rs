//! Images in prompts and from tools.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sampi_tests::fake_llm::{FakeLlm, text, tool_call};
use sampi_tests::harness::{Daemon, Model};
use serde_json::{Value, json};

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A PNG of about two megabytes as base64: noise, which no compression makes smaller.
fn noise() -> String {
    let mut state = 1u32;
    let noise = image::RgbImage::from_fn(800, 650, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgb(state.to_be_bytes()[..3].try_into().unwrap())
    });
    let mut png = std::io::Cursor::new(Vec::new());
    noise.write_to(&mut png, image::ImageFormat::Png).unwrap();
    BASE64_STANDARD.encode(png.into_inner())
}

fn block(data: &str) -> Value {
    json!({ "type": "image", "data": data, "mimeType": "image/png" })
}

fn prompt_with(data: &str) -> Value {
    json!({ "type": "prompt", "message": "look", "images": [block(data)] })
}

#[tokio::test]
async fn an_image_of_a_prompt_goes_to_the_model_in_the_form_of_its_api() {
    let llm = FakeLlm::start().await;
    llm.push(text("nice"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(prompt_with(PIXEL)).await;
    daemon.settled().await;
    let user = llm.requests()[0].messages_of("user")[0].clone();
    assert_eq!(user["content"][1]["image_url"]["url"], format!("data:image/png;base64,{PIXEL}"));
    daemon.finish().await;
    llm.finish();
}

// case 7
#[tokio::test]
async fn a_two_megabyte_image_goes_in_and_comes_back_unchanged() {
    let llm = FakeLlm::start().await;
    llm.push(text("nice"));
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = noise();
    assert!(data.len() > 2_000_000, "{}", data.len());
    daemon.ok(prompt_with(&data)).await;
    daemon.settled().await;
    let messages = daemon.messages().await;
    if messages[1]["content"][1]["data"].as_str() != Some(&data) {
        daemon.fail("the image comes back");
    }
    let sent = llm.requests()[0].body.to_string();
    assert!(sent.contains(&data), "the image went to the model");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn images_of_prompts_and_of_files_are_made_as_small_as_the_model_wants_them() {
    let llm = FakeLlm::start().await;
    llm.push_all([tool_call("c1", "read", json!({ "path": "noise.png" })), text("nice")]);
    let resize = json!({ "maxWidth": 400, "maxHeight": 100, "maxBytes": 60_000 });
    let model = json!({ "id": "m1", "input": ["text", "image"], "contextWindow": 100_000,
        "inputLimits": { "images": { "resize": resize } } });
    let models = json!({ "providers": { "mock": { "api": "openai-completions", "baseUrl": format!("{}/v1", llm.url()),
        "apiKey": "k", "models": [model] } } });
    let daemon = Daemon::builder(&llm)
        .models(models)
        .file("noise.png", BASE64_STANDARD.decode(noise()).unwrap())
        .spawn()
        .await;
    daemon.ok(prompt_with(&noise())).await;
    daemon.settled().await;
    let body = llm.requests()[1].body.to_string();
    let images: Vec<&str> =
        body.split(";base64,").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(images.len(), 2, "one of the prompt, one of the file");
    for data in images {
        let image = image::load_from_memory(&BASE64_STANDARD.decode(data).unwrap()).unwrap();
        // 800 by 650, and 100 pixels high at most.
        assert_eq!((image.width(), image.height()), (123, 100));
        assert!(data.len() < 60_000, "{}", data.len());
    }
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn data_that_is_no_image_never_reaches_the_model_as_one() {
    let llm = FakeLlm::start().await;
    llm.push(text("I see nothing."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(prompt_with("bm8gaW1hZ2U=")).await;
    daemon.settled().await;
    assert!(!llm.requests()[0].body.to_string().contains("bm8gaW1hZ2U="));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_model_without_eyes_gets_no_image() {
    let llm = FakeLlm::start().await;
    llm.push(text("I see nothing."));
    let daemon = Daemon::builder(&llm).model(Model::Reasoning).spawn().await;
    daemon.ok(prompt_with(PIXEL)).await;
    daemon.settled().await;
    assert!(!llm.requests()[0].body.to_string().contains(PIXEL));
    // What the user sent is in the session all the same.
    assert_eq!(daemon.messages().await[1]["content"][1]["data"], PIXEL);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_image_that_is_read_goes_to_the_model() {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "read", json!({ "path": "pixel.png" })));
    llm.push(text("nice"));
    let daemon =
        Daemon::builder(&llm).file("pixel.png", BASE64_STANDARD.decode(PIXEL).unwrap()).spawn().await;
    daemon.run("go").await;
    let end = &daemon.all(json!({ "type": "tool_execution_end" }))[0];
    let blocks = end["result"]["content"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["type"] == "image" && block["mimeType"] == "image/png"), "{end}");
    assert!(llm.requests()[1].body.to_string().contains("data:image/png;base64,"));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_refuses_every_prompt_that_is_still_on_its_way_in() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let mut chunk = String::new();
    let commands = [
        json!({ "id": "p1", "type": "prompt", "message": "look", "images": [block(&noise())] }),
        json!({ "id": "p2", "type": "prompt", "message": "and then" }),
        json!({ "id": "s", "type": "steer", "message": "by the way" }),
        json!({ "id": "a", "type": "abort" }),
    ];
    for command in commands {
        chunk += &format!("{command}\n");
    }
    daemon.send_raw(chunk.as_bytes()).await;
    assert_eq!(daemon.response(&json!("a")).await["success"], true);
    for id in ["p1", "p2"] {
        let refused = daemon.response(&json!(id)).await;
        assert_eq!(
            (&refused["success"], &refused["code"]),
            (&json!(false), &json!("cancelled")),
            "{refused}"
        );
    }
    assert_eq!(
        daemon.response(&json!("s")).await["data"]["disposition"],
        "queued",
        "only starts are aborted"
    );
    assert!(daemon.all(json!({ "type": "agent_start" })).is_empty());
    assert_eq!(daemon.state().await["pendingMessageCount"], 1);
    daemon.finish().await;
    llm.finish();
}
