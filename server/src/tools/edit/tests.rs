use proptest::prelude::*;

use super::super::test_context;
use super::*;

/// What Pi 1.6.0 answered to edits of a file, one case a line.
const PI_EDITS: &str = include_str!("fixtures/pi-edits.json");

fn edit(old: &str, new: &str) -> Edit {
    Edit { old_text: old.to_owned(), new_text: new.to_owned() }
}

#[test]
fn edits_do_what_pi_does() {
    let cases: Vec<Value> = serde_json::from_str(PI_EDITS).unwrap();
    assert!(cases.len() > 90);
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap();
        let edits = edits(case.as_object().unwrap()).unwrap();
        let result = edit_bytes(text("before").as_bytes(), &edits, text("path"));
        if case["error"] == true {
            assert_eq!(result.unwrap_err(), text("text"), "{case}");
            continue;
        }
        let (bytes, diff) = result.unwrap_or_else(|error| panic!("{error}: {case}"));
        assert_eq!(String::from_utf8(bytes).unwrap(), text("after"), "{case}");
        let output = output(text("path"), edits.len(), diff);
        assert_eq!(output.content, [ContentBlock::text(text("text"))]);
        assert_eq!(output.details.unwrap().to_string(), case["details"].to_string(), "{case}");
    }
}

#[test]
fn bytes_that_are_no_utf8_stay() {
    let (bytes, diff) = edit_bytes(b"caf\xe9 \xe2\x82\nb\n", &[edit("b", "B\u{10ffff}")], "f").unwrap();
    assert_eq!(bytes[..8], *b"caf\xe9 \xe2\x82\n");
    assert_eq!(diff.diff.lines().next(), Some(" 1 caf\u{fffd} \u{fffd}\u{fffd}"));
    assert!(edit_bytes("\u{10ff41}\u{ff}".as_bytes(), &[edit("\u{ff}", "x")], "f").is_ok());
    assert!(edit_bytes(b"\xf4\x8f\xbd\x81\xff", &[edit("x", "y")], "f").is_err());
}

#[tokio::test]
async fn edits_and_writes_of_one_file_at_once_do_not_lose_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let lines: String = (0..20).map(|n| format!("line {n};\n")).collect();
    std::fs::write(&file, lines).unwrap();
    std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
    let context = test_context(folder.path());
    let tool = EditTool::default();
    let calls = (0..20).map(|n| {
        let path = if n % 2 == 0 { "f" } else { "./link" };
        let arguments = json!({
            "path": path,
            "edits": [{ "oldText": format!("line {n};"), "newText": format!("done {n};") }],
        });
        tool.run(arguments.as_object().unwrap().clone(), &context)
    });
    for result in futures::future::join_all(calls).await {
        result.unwrap();
    }
    let expected: String = (0..20).map(|n| format!("done {n};\n")).collect();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
}

#[tokio::test]
async fn files_that_cannot_be_edited_are_told_as_pi_does() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("d")).unwrap();
    let context = test_context(folder.path());
    let run = async |path: &str, edits: Value| {
        let arguments = json!({ "path": path, "edits": edits }).as_object().unwrap().clone();
        EditTool::default().run(arguments, &context).await.unwrap_err().to_string()
    };
    let one = json!([{ "oldText": "a", "newText": "b" }]);
    assert_eq!(run("missing", one.clone()).await, "Could not edit file: missing. Error code: ENOENT.");
    assert_eq!(run("d", one).await, "EISDIR: illegal operation on a directory, read");
    let empty = "Edit tool input is invalid. edits must contain at least one replacement.";
    assert_eq!(run("d", json!([])).await, empty);
}

#[test]
fn a_rewrite_of_a_large_file_is_compared_quickly() {
    let old: String = (0..30_000).map(|n| format!("old {n}\n")).collect();
    let new: String = (0..30_000).map(|n| format!("new {n}\n")).collect();
    let (_, diff) = edit_bytes(old.as_bytes(), &[edit(&old, &new)], "f").unwrap();
    assert_eq!(diff.first_changed_line, Some(1));
    assert!(diff.patch.contains("@@ -1,30000 +1,30000 @@\n"));
}

/// A file of distinct lines with mixed line ends, and edits of some of its lines.
fn file_and_edits() -> impl Strategy<Value = (String, Vec<(usize, String)>)> {
    let line_end = prop_oneof![Just("\n"), Just("\r\n")];
    let lines = proptest::collection::vec(("[a-zé\u{1f600} ]{0,6}", line_end), 1..12);
    (lines, any::<bool>()).prop_flat_map(|(lines, mark)| {
        let count = lines.len();
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        for (index, (line, end)) in lines.iter().enumerate() {
            text.push_str(&format!("<{index}>{line}</{index}>{end}"));
        }
        let edits = proptest::collection::btree_map(0..count, "[x-z\n]{0,5}", 1..=count);
        (Just(text), edits.prop_map(|edits| edits.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn edits_equal_replacing_one_after_the_other((text, edits) in file_and_edits()) {
        let asked: Vec<Edit> =
            edits.iter().rev().map(|(line, new)| edit(&format!("<{line}>"), &format!("[{line}{new}]"))).collect();
        let (bytes, diff) = edit_bytes(text.as_bytes(), &asked, "f").unwrap();
        let edited = String::from_utf8(bytes).unwrap();
        let naive = asked.iter().fold(to_lf(&text), |text, edit| text.replacen(&edit.old_text, &edit.new_text, 1));
        prop_assert_eq!(to_lf(&edited), naive.clone());
        prop_assert_eq!(edited.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        // Line ends of lines that were not touched stay.
        for line in text.split_inclusive('\n').filter(|line| !edits.iter().any(|(n, _)| line.contains(&format!("<{n}>")))) {
            prop_assert!(edited.contains(line));
        }
        // The patch leads from the old to the new text.
        let old = to_lf(text.trim_start_matches('\u{feff}'));
        prop_assert_eq!(apply_patch(&old, &diff.patch), naive.trim_start_matches('\u{feff}'));
    }

    #[test]
    fn any_edit_keeps_a_file_of_one_kind_of_line_end(lines in proptest::collection::vec("[ab]{0,3}", 2..8), new in "[c\n]{0,4}", at in 0usize..8) {
        let at = at % lines.len();
        let text: String = lines.iter().enumerate().map(|(n, line)| format!("{n}:{line}\r\n")).collect();
        let (bytes, _) = edit_bytes(text.as_bytes(), &[edit(&format!("{at}:"), &format!("{new}!"))], "f").unwrap();
        let edited = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(edited.replace("\r\n", "").matches(['\r', '\n']).count(), 0);
    }

    #[test]
    fn the_patch_of_any_replacement_applies(old in "[ab\n]{1,30}", new in "[abc\n]{0,30}") {
        prop_assume!(old != new);
        let replacement = matching::Replacement { start: 0, end: old.len(), text: new.clone() };
        let diff = edit_diff("f", &old, &new, &[replacement]);
        prop_assert_eq!(apply_patch(&old, &diff.patch), new);
    }
}

/// Applies a unified patch that fits.
fn apply_patch(old: &str, patch: &str) -> String {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut result = String::new();
    let mut next = 0;
    let mut last_sign = ' ';
    for line in patch.split_inclusive('\n').skip(2) {
        let sign = line.chars().next().unwrap();
        match sign {
            '@' => {
                let numbers = line.split(['-', ',']).collect::<Vec<_>>();
                let start: usize = numbers[1].parse().unwrap();
                let length: usize = numbers[2].split(' ').next().unwrap().parse().unwrap();
                let start = if length == 0 { start } else { start - 1 };
                result.extend(old_lines[next..start].iter().copied());
                next = start;
            }
            '\\' => {
                if last_sign != '-' {
                    result.pop();
                }
            }
            '-' => next += 1,
            ' ' => {
                next += 1;
                result.push_str(&line[1..]);
            }
            _ => result.push_str(&line[1..]),
        }
        last_sign = sign;
    }
    result.extend(old_lines[next..].iter().copied());
    result
}
