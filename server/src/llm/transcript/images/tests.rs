use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::llm::testing::{answer, call, model, request, result};

fn block(data: &str) -> Value {
    json!({ "type": "image", "data": data, "mimeType": "image/png" })
}

fn said(blocks: Vec<Value>) -> Value {
    json!({ "role": "user", "content": blocks })
}

/// A user's message with an image of each of these names.
fn user(names: &[&str]) -> Value {
    said(names.iter().map(|name| block(name)).collect())
}

/// A PNG of one colour.
fn picture(width: u32, height: u32) -> String {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(width, height).write_to(&mut png, image::ImageFormat::Png).unwrap();
    STANDARD.encode(png.into_inner())
}

/// What is sent of user's messages and results: images by the head of their data, notes by their kind.
fn sent(fields: Value, limits: ImageLimits, messages: Vec<Value>) -> Vec<String> {
    let request = request(model("x", fields), ThinkingLevel::Off, Value::Array(messages));
    let transcript = Transcript::new(&request, str::to_owned, limits);
    let shown = |part: &Part<'_>| match part {
        Part::Image { data, .. } => data.chars().take(8).collect(),
        Part::Text(text) if text.contains("more images") => "MANY".to_owned(),
        Part::Text(text) if text.contains("larger") => "LARGE".to_owned(),
        Part::Text(text) => text.to_string(),
    };
    let parts = transcript.turns.iter().filter_map(|turn| match turn {
        Turn::User(user) => Some(&user.parts),
        Turn::ToolResult(result) => Some(&result.parts),
        Turn::Assistant(_) | Turn::System(_) | Turn::Effort(_) => None,
    });
    parts.map(|parts| parts.iter().map(shown).collect::<Vec<String>>().join(" ")).collect()
}

const PER_REQUEST: ImageLimits = ImageLimits { per_request: Some(3), ..ImageLimits::NONE };

#[test]
fn the_oldest_images_make_room_and_one_note_stands_for_each_run() {
    let text = json!({ "type": "text", "text": "t" });
    let messages =
        vec![said(vec![block("a"), block("b"), text, block("c")]), user(&["d"]), user(&["e", "f"])];
    assert_eq!(sent(json!({}), ImageLimits::NONE, messages.clone()), ["a b t c", "d", "e f"]);
    assert_eq!(sent(json!({}), PER_REQUEST, messages), ["MANY t MANY", "d", "e f"]);
    assert_eq!(sent(json!({}), PER_REQUEST, vec![user(&["a", "b", "c"])]), ["a b c"]);
}

#[test]
fn the_limits_of_a_model_go_before_those_of_its_api() {
    let limits = |limits: Value| json!({ "inputLimits": limits });
    let messages = || vec![user(&["a", "b"]), user(&["c", "d"])];
    let of = |own: Value| sent(limits(own), PER_REQUEST, messages());
    assert_eq!(of(json!({})), ["MANY b", "c d"]);
    assert_eq!(of(json!({ "images": { "maxPerRequest": 2 } })), ["MANY", "c d"]);
    assert_eq!(of(json!({ "images": { "maxPerRequest": 9 } })), ["a b", "c d"]);
    assert_eq!(of(json!({ "images": { "maxPerRequest": 0 } })), ["MANY", "MANY"]);
    assert_eq!(of(json!({ "images": { "maxPerMessage": 1 } })), ["MANY b", "MANY d"]);
    assert_eq!(
        of(json!({ "images": { "maxPerRequest": "many" }, "maxRequestBytes": -1 })),
        ["MANY b", "c d"]
    );
}

#[test]
fn results_that_stand_together_are_one_message() {
    let messages = vec![
        user(&["u"]),
        answer("x", "toolUse", json!([call("1", json!({})), call("2", json!({}))])),
        result("1", json!([block("a"), block("b")])),
        result("2", json!([block("c")])),
        answer("x", "toolUse", json!([call("3", json!({}))])),
        result("3", json!([block("d"), block("e")])),
        user(&["v"]),
    ];
    let two = ImageLimits { per_message: Some(2), ..ImageLimits::NONE };
    assert_eq!(sent(json!({}), two, messages), ["u", "MANY b", "c", "d e", "v"]);
}

#[test]
fn many_images_that_are_too_many_go_at_once_so_that_caches_last() {
    let limits = ImageLimits { per_request: Some(30), ..ImageLimits::NONE };
    let left = |total: usize| {
        let messages = (0..total).map(|n| user(&[&format!("i{n}")])).collect();
        sent(json!({}), limits, messages).iter().filter(|part| *part != "MANY").count()
    };
    // Three at a time: the first image that is sent changes with every third that is added.
    assert_eq!([30, 31, 32, 33, 34].map(left), [30, 28, 29, 30, 28]);
}

#[test]
fn an_image_that_is_too_large_is_left_out_alone() {
    let limits = ImageLimits { image_bytes: Some(8), per_request: Some(3), ..ImageLimits::NONE };
    let messages = vec![user(&["123456789", "12345678"]), user(&["a", "b"])];
    assert_eq!(sent(json!({}), limits, messages), ["LARGE 12345678", "a b"]);
}

#[test]
fn sides_are_limited_and_more_so_among_many_images() {
    let (wide, tall, small) = (picture(30, 1), picture(1, 21), picture(5, 5));
    let head = |data: &str| data.chars().take(8).collect::<String>();
    let limits =
        ImageLimits { side: Some(25), crowd: Some(Crowd { above: 2, side: 10 }), ..ImageLimits::NONE };
    let of = |names: &[&str]| sent(json!({}), limits, vec![user(names)]).remove(0);
    assert_eq!(of(&[&wide, &tall, &small]), format!("LARGE {} {}", head(&tall), head(&small)));
    assert_eq!(of(&[&small, &tall, &small]), format!("{} LARGE {}", head(&small), head(&small)));
    // What is no image that can be read is the provider's to judge.
    assert_eq!(of(&["QUJD", "QUJD", "QUJD"]), "QUJD QUJD QUJD");
}

#[test]
fn a_request_that_is_too_long_loses_its_oldest_images() {
    let image = "x".repeat(1000);
    let messages = |text: &str| {
        vec![user(&[&image]), said(vec![json!({ "type": "text", "text": text })]), user(&[&image, &image])]
    };
    let limits = ImageLimits { request_bytes: Some(3200), ..ImageLimits::NONE };
    let of = |text: &str| {
        let sent = sent(json!({}), limits, messages(text));
        sent.join(" ").split(' ').filter(|part| *part == "xxxxxxxx").count()
    };
    assert_eq!([of("t"), of(&"t".repeat(1000)), of(&"\n".repeat(1100)), of(&"t".repeat(5000))], [3, 2, 0, 0]);
}
