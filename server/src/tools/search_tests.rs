//! The search tools on one tree of files.

use std::path::Path;

use serde_json::{Value, json};

use super::{FindTool, GrepTool, Tool, WriteTool, test_context};

const FILES: [(&str, &str); 18] = [
    (".dot.rs", "needle dot\n"),
    (".git/config", "needle\n"),
    (".gitignore", "skip\n*.log\n!keep.log\n/only\n"),
    (".hidden/h.txt", "needle h\n"),
    ("Zed.rs", ""),
    ("a.log", "needle log\n"),
    ("keep.log", "needle keep\n"),
    ("ctx.txt", "1\n2\n3 needle\n4\n5\n6 needle\n7\n8\n9\n10\n11\n12 needle\n13\n"),
    ("only", "needle\n"),
    ("skip/c.rs", "needle\n"),
    ("src/a.rs", "x\nneedle here\ny\n"),
    ("src/b.rs", "no\nNeedle\n"),
    ("src/deep/c.rs", "needle\r\nq\r\nneedle2\r\n"),
    ("sub/.gitignore", "ig.txt\n"),
    ("sub/.ignore", "ign2.txt\n"),
    ("sub/ig.txt", "needle ig\n"),
    ("sub/ign2.txt", "needle ign2\n"),
    ("sub/only/f.txt", "needle only\n"),
];

fn tree(git: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in FILES.into_iter().filter(|(name, _)| git || !name.starts_with(".git/")) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

async fn call(tool: &dyn Tool, folder: &Path, arguments: Value) -> Result<(String, Option<Value>), String> {
    let context = test_context(folder);
    let result = tool.run(arguments.as_object().unwrap().clone(), &context).await;
    let output = result.map_err(|error| error.to_string().replace(folder.to_str().unwrap(), "<R>"))?;
    Ok((output.content[0].as_text().unwrap().to_owned(), output.details))
}

async fn grep(folder: &Path, arguments: Value) -> String {
    call(&GrepTool::default(), folder, arguments).await.unwrap().0
}

async fn find(folder: &Path, pattern: &str) -> String {
    call(&FindTool::default(), folder, json!({ "pattern": pattern })).await.unwrap().0
}

#[tokio::test]
async fn grep_leaves_out_what_a_repository_ignores_and_sorts_by_path() {
    let tree = tree(true);
    let expected = ".dot.rs:1: needle dot\n.hidden/h.txt:1: needle h\nctx.txt:3: 3 needle\nctx.txt:6: 6 \
                    needle\nctx.txt:12: 12 needle\nkeep.log:1: needle keep\nsrc/a.rs:2: needle \
                    here\nsrc/deep/c.rs:1: needle\nsrc/deep/c.rs:3: needle2\nsub/only/f.txt:1: needle only";
    assert_eq!(grep(tree.path(), json!({ "pattern": "needle" })).await, expected);
}

#[tokio::test]
async fn grep_outside_a_repository_reads_only_ignore_files() {
    let tree = tree(false);
    let found = grep(tree.path(), json!({ "pattern": "needle" })).await;
    assert!(found.contains("skip/c.rs:1: needle\n") && found.contains("sub/ig.txt"));
    assert!(!found.contains("ign2"));
}

#[tokio::test]
async fn grep_takes_a_folder_a_file_and_a_glob() {
    let tree = tree(true);
    let in_src = "a.rs:2: needle here\ndeep/c.rs:1: needle\ndeep/c.rs:3: needle2";
    assert_eq!(grep(tree.path(), json!({ "pattern": "needle", "path": "src" })).await, in_src);
    let one = json!({ "pattern": "needle", "path": "src/a.rs" });
    assert_eq!(grep(tree.path(), one).await, "a.rs:2: needle here");
    let ignored = json!({ "pattern": "needle", "path": "skip" });
    assert_eq!(grep(tree.path(), ignored).await, "c.rs:1: needle");
    let glob = json!({ "pattern": "needle", "glob": "src/**/*.rs" });
    assert!(grep(tree.path(), glob).await.starts_with("src/a.rs:2: needle here\nsrc/deep/c.rs:1: needle\n"));
    let glob = json!({ "pattern": "needle", "glob": "*.{rs,log}" });
    assert!(
        grep(tree.path(), glob).await.starts_with(".dot.rs:1: needle dot\na.log:1: needle log\nkeep.log")
    );
    let error = call(&GrepTool::default(), tree.path(), json!({ "pattern": "x", "path": "nodir" })).await;
    assert_eq!(error.unwrap_err(), "Path not found: <R>/nodir");
    let error = call(&GrepTool::default(), tree.path(), json!({ "pattern": "x", "glob": "[bad" })).await;
    assert_eq!(error.unwrap_err(), "error parsing glob '[bad': unclosed character class; missing ']'");
}

#[tokio::test]
async fn grep_takes_case_literals_and_context() {
    let tree = tree(true);
    let any_case = json!({ "pattern": "NEEDLE", "path": "src/b.rs", "ignoreCase": true });
    assert_eq!(grep(tree.path(), any_case).await, "b.rs:2: Needle");
    std::fs::write(tree.path().join("p"), "two words (a|b)\n").unwrap();
    let literal = json!({ "pattern": "(a|b)", "path": "p", "literal": true });
    assert_eq!(grep(tree.path(), literal).await, "p:1: two words (a|b)");
    let context = json!({ "pattern": "needle", "path": "ctx.txt", "context": 1 });
    let expected = "ctx.txt-2- 2\nctx.txt:3: 3 needle\nctx.txt-4- 4\nctx.txt-5- 5\nctx.txt:6: 6 \
                    needle\nctx.txt-7- 7\nctx.txt-11- 11\nctx.txt:12: 12 needle\nctx.txt-13- 13";
    assert_eq!(grep(tree.path(), context).await, expected);
    assert_eq!(grep(tree.path(), json!({ "pattern": "absent" })).await, "No matches found");
    let error = call(&GrepTool::default(), tree.path(), json!({ "pattern": "(a|b" })).await.unwrap_err();
    assert_eq!(error, "regex parse error:\n    (a|b\n    ^\nerror: unclosed group");
}

#[tokio::test]
async fn grep_stops_at_the_limit_and_shows_the_context_of_the_last_match() {
    let tree = tree(true);
    let limited = json!({ "pattern": "needle", "path": "ctx.txt", "context": 2, "limit": 2 });
    let (text, details) = call(&GrepTool::default(), tree.path(), limited).await.unwrap();
    let expected = "ctx.txt-1- 1\nctx.txt-2- 2\nctx.txt:3: 3 needle\nctx.txt-4- 4\nctx.txt-5- 5\nctx.txt:6: 6 \
                    needle\nctx.txt-7- 7\nctx.txt-8- 8\n\n[2 matches limit reached. Use limit=4 for more, or refine pattern]";
    assert_eq!((text.as_str(), details), (expected, Some(json!({ "matchLimitReached": 2 }))));
    std::fs::write(tree.path().join("four"), "n\nn\nn\nn\nq\n").unwrap();
    let close = json!({ "pattern": "n", "path": "four", "context": 1, "limit": 3 });
    let expected = "four:1: n\nfour:2: n\nfour:3: n\nfour-4- n\n\n[3 matches limit reached. Use limit=6 for more, or refine pattern]";
    assert_eq!(grep(tree.path(), close).await, expected);
    let exact = json!({ "pattern": "n", "path": "four", "context": 1, "limit": 4 });
    assert_eq!(grep(tree.path(), exact).await, "four:1: n\nfour:2: n\nfour:3: n\nfour:4: n\nfour-5- q");
}

#[tokio::test]
async fn grep_cuts_long_lines_and_survives_bytes_that_are_no_text() {
    let tree = tree(true);
    std::fs::write(tree.path().join("long"), format!("needle{}\n", "é".repeat(600))).unwrap();
    let (text, details) =
        call(&GrepTool::default(), tree.path(), json!({ "pattern": "needle", "path": "long" }))
            .await
            .unwrap();
    let expected = format!(
        "long:1: needle{}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]",
        "é".repeat(494)
    );
    assert_eq!((text, details), (expected, Some(json!({ "linesTruncated": true }))));
    std::fs::write(tree.path().join("bin"), b"\0\xffneedle\0\n").unwrap();
    let named = json!({ "pattern": "needle", "path": "bin" });
    assert_eq!(grep(tree.path(), named).await, "bin:1: \0\u{fffd}needle\0");
    assert_eq!(grep(tree.path(), json!({ "pattern": "needle", "glob": "bin" })).await, "No matches found");
}

#[tokio::test]
async fn find_honours_gitignore_inside_and_outside_of_repositories() {
    for git in [true, false] {
        let tree = tree(git);
        let expected = ".dot.rs\n.gitignore\n.hidden/\n.hidden/h.txt\nZed.rs\nctx.txt\nkeep.log\nsrc/\nsrc/a.rs\nsrc/b.rs\nsrc/deep/\nsrc/deep/c.rs\nsub/\nsub/.gitignore\nsub/.ignore\nsub/only/\nsub/only/f.txt";
        assert_eq!(find(tree.path(), "*").await, expected);
        assert_eq!(find(tree.path(), "").await, expected);
    }
}

#[tokio::test]
async fn find_matches_names_and_paths() {
    let tree = tree(true);
    assert_eq!(find(tree.path(), "*.rs").await, ".dot.rs\nZed.rs\nsrc/a.rs\nsrc/b.rs\nsrc/deep/c.rs");
    assert_eq!(find(tree.path(), "**/*.rs").await, ".dot.rs\nZed.rs\nsrc/a.rs\nsrc/b.rs\nsrc/deep/c.rs");
    assert_eq!(find(tree.path(), "./src/*.rs").await, "src/a.rs\nsrc/b.rs");
    assert_eq!(find(tree.path(), "src/**").await, "src/a.rs\nsrc/b.rs\nsrc/deep/\nsrc/deep/c.rs");
    assert_eq!(find(tree.path(), "zed*").await, "Zed.rs");
    assert_eq!(find(tree.path(), "*.RS").await, "No files found matching pattern");
    assert_eq!(find(tree.path(), "deep/*.rs").await, "No files found matching pattern");
    assert_eq!(find(tree.path(), "**/deep/*").await, "src/deep/c.rs");
    assert_eq!(find(tree.path(), "src/").await, "No files found matching pattern");
    let in_src = json!({ "pattern": "*.rs", "path": "src/" });
    assert_eq!(call(&FindTool::default(), tree.path(), in_src).await.unwrap().0, "a.rs\nb.rs\ndeep/c.rs");
    let error = call(&FindTool::default(), tree.path(), json!({ "pattern": "[bad" })).await.unwrap_err();
    assert_eq!(error, "error parsing glob '[bad': unclosed character class; missing ']'");
    let error = call(&FindTool::default(), tree.path(), json!({ "pattern": "*", "path": "nodir" })).await;
    assert_eq!(error.unwrap_err(), "Path not found: <R>/nodir");
}

#[tokio::test]
async fn find_tells_its_limits_when_they_cut() {
    let tree = tree(true);
    let limited = json!({ "pattern": "*.rs", "limit": 2 });
    let (text, details) = call(&FindTool::default(), tree.path(), limited).await.unwrap();
    assert_eq!(text, ".dot.rs\nZed.rs\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]");
    assert_eq!(details, Some(json!({ "resultLimitReached": 2 })));
    let exact = json!({ "pattern": "*.rs", "limit": 5 });
    assert_eq!(call(&FindTool::default(), tree.path(), exact).await.unwrap().1, None);
    for number in 0..600 {
        std::fs::write(tree.path().join(format!("{}{number:04}", "n".repeat(100))), "").unwrap();
    }
    let (text, details) = call(&FindTool::default(), tree.path(), json!({ "pattern": "n*" })).await.unwrap();
    assert!(text.ends_with("\n\n[50.0KB limit reached]"));
    let truncation = &details.unwrap()["truncation"];
    assert_eq!(
        (&truncation["maxLines"], &truncation["totalLines"]),
        (&json!(9_007_199_254_740_991_u64), &json!(600))
    );
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let tree = tree(true);
    let context = test_context(tree.path());
    context.cancel.cancel();
    let arguments = json!({ "pattern": "x" }).as_object().unwrap().clone();
    let error = GrepTool::default().run(arguments, &context).await.unwrap_err();
    assert_eq!(error.to_string(), "Operation aborted");
}

#[tokio::test]
async fn a_pipe_or_device_is_neither_searched_nor_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("p")).status().unwrap().success());
    for path in ["/dev/zero", "p"] {
        let arguments = json!({ "pattern": "x", "path": path });
        let error = call(&GrepTool::default(), folder.path(), arguments).await.unwrap_err();
        assert!(error.starts_with("Not a regular file: "), "{error}");
    }
    let arguments = json!({ "path": "p", "content": "x" });
    let error = call(&WriteTool::default(), folder.path(), arguments).await.unwrap_err();
    assert_eq!(error, "Not a regular file: <R>/p");
}

#[tokio::test]
async fn what_is_behind_the_limit_of_bytes_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), format!("{}\n", "n".repeat(400)).repeat(1000)).unwrap();
    let arguments = json!({ "pattern": "n", "limit": 2000 });
    let (text, details) = call(&GrepTool::default(), folder.path(), arguments).await.unwrap();
    assert!(text.ends_with("\n\n[50.0KB limit reached]"), "{}", text.len());
    let truncation = &details.unwrap()["truncation"];
    // Behind each line's number stand `f:`, `: `, and its 400 letters.
    let bytes = 1000 * 404 + (9 + 2 * 90 + 3 * 900 + 4) + 999;
    assert_eq!(truncation["totalLines"], 1000);
    assert_eq!(truncation["totalBytes"], bytes);
    assert_eq!(truncation["outputLines"].as_u64().unwrap(), text.lines().count() as u64 - 2);
}
