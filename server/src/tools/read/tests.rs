use super::super::test_context;
use super::*;

async fn read(folder: &Path, arguments: Value) -> Result<ToolOutput, String> {
    let context = test_context(folder);
    let result = ReadTool::default().run(arguments.as_object().unwrap().clone(), &context).await;
    result.map_err(|error| error.to_string())
}

#[tokio::test]
async fn text_is_content_and_structured_result() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), b"\xef\xbb\xbfab\xff\n").unwrap();
    let output = read(folder.path(), json!({ "path": "@a" })).await.unwrap();
    assert_eq!(output.content, [ContentBlock::text("\u{feff}ab\u{fffd}\n")]);
    assert_eq!(output.structured_content, Some(json!("\u{feff}ab\u{fffd}\n")));
    assert_eq!((output.details, output.is_error), (None, None));
}

#[tokio::test]
async fn the_details_of_a_cut_file_are_pis() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), format!("{}\nb\n", "y".repeat(60_000))).unwrap();
    let output = read(folder.path(), json!({ "path": "a" })).await.unwrap();
    let expected = r#"{"truncation":{"content":"","truncated":true,"truncatedBy":"bytes","totalLines":2,"totalBytes":60003,"outputLines":0,"outputBytes":0,"lastLinePartial":false,"firstLineExceedsLimit":true,"maxLines":2000,"maxBytes":51200}}"#;
    assert_eq!(output.details.unwrap().to_string(), expected);
}

#[tokio::test]
async fn what_cannot_be_read_is_told_as_pi_does() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    std::fs::write(folder.path().join("f"), "x").unwrap();
    let error = async |path: &str| read(folder.path(), json!({ "path": path })).await.unwrap_err();
    assert_eq!(
        error("missing.txt").await,
        format!("ENOENT: no such file or directory, access '{root}/missing.txt'")
    );
    assert_eq!(error("f/x").await, format!("ENOTDIR: not a directory, access '{root}/f/x'"));
    assert_eq!(error(".").await, "EISDIR: illegal operation on a directory, read");
    assert_eq!(error("/dev/zero").await, "Not a regular file: /dev/zero");
}

#[tokio::test]
async fn an_image_comes_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
    std::fs::write(folder.path().join("g"), gif).unwrap();
    let mut context = test_context(folder.path());
    context.images.model_takes_images = false;
    context.model_id = Some("m2".into());
    let arguments = json!({ "path": "g" }).as_object().unwrap().clone();
    let output = ReadTool::default().run(arguments, &context).await.unwrap();
    assert_eq!(output.content[0], ContentBlock::text("Read image file [image/gif]"));
    let structured = output.structured_content.unwrap();
    assert_eq!(structured["mimeType"], "image/gif");
    assert!(matches!(&output.content[1], ContentBlock::Image(image) if structured["data"] == image.data));
    assert_eq!(output.details, Some(json!({ "imageUnsupportedByModel": "m2" })));
}

#[tokio::test]
async fn a_broken_image_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.jpg"), b"\xff\xd8\xff\xe0abc").unwrap();
    let output = read(folder.path(), json!({ "path": "x.jpg" })).await.unwrap();
    let text = "Read image file [image/jpeg]\n[Image omitted: could not be resized below the inline image size limit.]";
    assert_eq!(output.content, [ContentBlock::text(text)]);
    assert_eq!(output.structured_content, Some(json!(text)));
}
