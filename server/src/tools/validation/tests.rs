use serde_json::json;

use super::super::{EditTool, GrepTool, ReadTool, ToolSet, WriteTool};
use super::*;

fn prepare(tool: &dyn Tool, arguments: Value) -> Result<Value, String> {
    prepare_call(tool, arguments.as_object().unwrap()).map(Value::Object)
}

fn read(arguments: Value) -> Result<Value, String> {
    prepare(&ReadTool::default(), arguments)
}

fn edit(arguments: Value) -> Result<Value, String> {
    prepare(&EditTool::default(), arguments)
}

#[test]
fn the_error_names_every_problem_and_shows_the_arguments() {
    let expected = "Validation failed for tool \"read\":\n  - path: missing\n  - offset: expected number, got \
                    string\n\nReceived arguments:\n{\n  \"offset\": \"x\"\n}";
    assert_eq!(read(json!({ "offset": "x" })).unwrap_err(), expected);
    let expected = "Validation failed for tool \"read\":\n  - path: missing\n\nReceived arguments:\n{}";
    assert_eq!(read(json!({})).unwrap_err(), expected);
}

#[test]
fn numbers_and_flags_become_text_where_text_is_expected() {
    assert_eq!(read(json!({ "path": 12 })).unwrap(), json!({ "path": "12" }));
    assert_eq!(read(json!({ "path": 1.0 })).unwrap(), json!({ "path": "1" }));
    assert_eq!(read(json!({ "path": 1e21 })).unwrap(), json!({ "path": "1e+21" }));
    assert_eq!(read(json!({ "path": -0.5e-7 })).unwrap(), json!({ "path": "-5e-8" }));
    assert_eq!(read(json!({ "path": true })).unwrap(), json!({ "path": "true" }));
    assert_eq!(read(json!({ "path": null })).unwrap(), json!({ "path": "null" }));
}

#[test]
fn text_and_flags_become_numbers_as_javascript_reads_them() {
    let cases = [
        ("2", 2.0),
        (" 2 ", 2.0),
        ("0x2", 2.0),
        ("0b11", 3.0),
        ("1e1", 10.0),
        ("", 0.0),
        (".5", 0.5),
        ("+5", 5.0),
    ];
    for (text, number) in cases {
        let mended = read(json!({ "path": "a", "offset": text })).unwrap();
        assert_eq!(mended["offset"].as_f64(), Some(number), "{text:?}");
    }
    assert_eq!(read(json!({ "path": "a", "limit": true })).unwrap()["limit"], json!(1));
    for text in ["2x", "Infinity", "NaN", "1e400", "1_0", "-", "null", "abc"] {
        let error = read(json!({ "path": "a", "offset": text })).unwrap_err();
        assert!(error.contains("- offset: expected number, got string\n"), "{text:?}: {error}");
    }
}

#[test]
fn words_and_digits_become_flags() {
    let grep = |flag: Value| prepare(&GrepTool::default(), json!({ "pattern": "x", "ignoreCase": flag }));
    for flag in [json!("true"), json!("True"), json!("TRUE"), json!("1"), json!(1)] {
        assert_eq!(grep(flag).unwrap()["ignoreCase"], json!(true));
    }
    for flag in [json!("false"), json!("FALSE"), json!("0"), json!(0)] {
        assert_eq!(grep(flag).unwrap()["ignoreCase"], json!(false));
    }
    let problem = |flag: Value| grep(flag).unwrap_err().lines().nth(1).unwrap().to_owned();
    assert_eq!(problem(json!("yes")), "  - ignoreCase: expected boolean, got string");
    assert_eq!(problem(json!(" true ")), "  - ignoreCase: expected boolean, got string");
    assert_eq!(problem(json!(2)), "  - ignoreCase: expected boolean, got integer");
    assert_eq!(problem(json!(1.5)), "  - ignoreCase: expected boolean, got number");
    assert_eq!(problem(json!([true])), "  - ignoreCase: expected boolean, got array");
}

#[test]
fn null_for_an_optional_argument_is_left_out_and_order_is_kept() {
    let mended =
        read(json!({ "limit": "3", "offset": null, "extra": { "z": 1, "a": 2 }, "path": "a" })).unwrap();
    assert_eq!(mended.to_string(), r#"{"limit":3,"extra":{"z":1,"a":2},"path":"a"}"#);
}

#[test]
fn a_single_value_becomes_a_list() {
    let expected = json!({ "path": "a", "edits": [{ "oldText": "x", "newText": "5" }] });
    assert_eq!(edit(json!({ "path": "a", "edits": { "oldText": "x", "newText": 5 } })).unwrap(), expected);
    let error = edit(json!({ "path": "a", "edits": 5 })).unwrap_err();
    assert!(error.contains("  - edits.0: expected object, got integer\n"), "{error}");
    assert!(error.ends_with("{\n  \"path\": \"a\",\n  \"edits\": 5\n}"), "{error}");
    let list =
        edit(json!({ "path": "a", "edits": [{ "oldText": 5, "newText": null }, "x", 3] })).unwrap_err();
    let problems: Vec<&str> = list.lines().skip(1).take(2).collect();
    assert_eq!(
        problems,
        ["  - edits.1: expected object, got string", "  - edits.2: expected object, got integer"]
    );
}

#[test]
fn edits_may_come_as_json_text_and_at_the_top_level() {
    let one = json!({ "path": "a", "edits": [{ "oldText": "x", "newText": "y" }] });
    let as_text = r#"[{"oldText":"x","newText":"y"}]"#;
    assert_eq!(edit(json!({ "path": "a", "edits": as_text })).unwrap(), one);
    assert_eq!(edit(json!({ "path": "a", "edits": as_text[1..as_text.len() - 1] })).unwrap(), one);
    assert_eq!(edit(json!({ "path": "a", "oldText": "x", "newText": "y" })).unwrap(), one);
    assert_eq!(edit(json!({ "path": "a", "edits": null, "oldText": "x", "newText": "y" })).unwrap(), one);
    assert_eq!(edit(json!({ "path": "a", "edits": "[1", "oldText": "x", "newText": "y" })).unwrap(), one);
    let two = json!({ "path": "a", "edits": [{ "oldText": "q" }], "oldText": "x", "newText": "y" });
    let expected = "Validation failed for tool \"edit\":\n  - edits.0.newText: missing\n\nReceived arguments:\n{\n  \
                    \"path\": \"a\",\n  \"edits\": [\n    {\n      \"oldText\": \"q\"\n    },\n    {\n      \
                    \"oldText\": \"x\",\n      \"newText\": \"y\"\n    }\n  ]\n}";
    assert_eq!(edit(two).unwrap_err(), expected);
    let error = edit(json!({ "path": "a", "oldText": "x" })).unwrap_err();
    assert!(error.starts_with("Validation failed for tool \"edit\":\n  - edits: missing\n"));
}

#[test]
fn objects_are_no_text() {
    let error = prepare(&WriteTool::default(), json!({ "path": "o", "content": { "a": [] } })).unwrap_err();
    assert!(error.contains("- content: expected string, got object\n"), "{error}");
    assert!(error.ends_with("{\n  \"path\": \"o\",\n  \"content\": {\n    \"a\": []\n  }\n}"), "{error}");
}

#[test]
fn the_other_answers_are_pis() {
    assert_eq!(tool_not_found("nosuch"), "Tool nosuch not found");
    let text =
        invalid_arguments("read", "Tool arguments must be a JSON object\n\nReceived arguments:\n[1,2]");
    let expected = "Invalid arguments for tool \"read\": Tool arguments must be a JSON object\n\nReceived \
                    arguments:\n[1,2]";
    assert_eq!(text, expected);
}

/// What Pi does with arguments of a tool that declares these fields, found by trying.
#[test]
fn the_other_forms_of_schema_are_mended_and_told_as_pi_does() {
    let object = |fields: Value| json!({ "type": "object", "required": ["k"], "properties": fields });
    let cases = [
        (json!({ "type": "number" }), json!("true"), Ok(json!(1))),
        (json!({ "type": "number" }), json!(null), Ok(json!(0))),
        (json!({ "type": "number" }), json!("\u{a0}5"), Ok(json!(5))),
        (json!({ "type": "number" }), json!("-0x1"), Err("v: expected number, got string")),
        (json!({ "type": "integer" }), json!("-1.7"), Ok(json!(-1))),
        (json!({ "type": "integer" }), json!(1.5), Ok(json!(1))),
        (json!({ "type": "boolean" }), json!(null), Ok(json!(false))),
        (json!({ "type": "null" }), json!(""), Ok(json!(null))),
        (json!({ "type": "null" }), json!(5), Err("v: expected null, got integer")),
        (json!({ "type": "string", "enum": ["a", "1"] }), json!(1), Ok(json!("1"))),
        (
            json!({ "type": "string", "enum": ["a", "1"] }),
            json!("c"),
            Err("v: expected one of [\"a\",\"1\"]"),
        ),
        (json!({ "enum": [1, "x"] }), json!("1"), Ok(json!(1))),
        (json!({ "const": "k" }), json!("j"), Err("v: expected \"k\"")),
        (json!({ "anyOf": [{ "type": "number" }, { "type": "boolean" }] }), json!("true"), Ok(json!(1))),
        (
            json!({ "anyOf": [{ "type": "number" }, { "type": "boolean" }] }),
            json!("x"),
            Err("v: expected number, got string"),
        ),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), json!(null), Ok(json!(null))),
        (json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }), json!(5.5), Ok(json!("5.5"))),
        (json!({ "type": ["number", "string"] }), json!(true), Ok(json!(1))),
        (json!({ "type": ["number", "string"] }), json!({}), Err("v: expected number or string, got object")),
        (
            json!({ "type": "array", "items": { "type": "number" } }),
            json!([1, "2", true, null]),
            Ok(json!([1, 2, 1, 0])),
        ),
        (json!({ "type": "array", "minItems": 1 }), json!([]), Err("v: expected at least 1 items")),
        (json!({ "type": "array", "uniqueItems": true }), json!(["a", "a"]), Err("v: expected unique items")),
        (
            json!({ "type": "object", "additionalProperties": false }),
            json!({ "q": 1 }),
            Err("v.q: unknown field"),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "number" } }),
            json!({ "q": "1" }),
            Ok(json!({ "q": 1 })),
        ),
        (json!({ "allOf": [{ "type": "number" }, { "minimum": 3 }] }), json!("2"), Err("v: expected >= 3")),
        (json!({ "type": "number", "exclusiveMaximum": 5 }), json!(5), Err("v: expected < 5")),
        (json!({ "type": "number", "multipleOf": 2 }), json!(3), Err("v: expected a multiple of 2")),
        (json!({ "type": "string", "minLength": 2 }), json!("é"), Err("v: expected at least 2 characters")),
        (json!({ "type": "string", "pattern": "^a+$" }), json!("b"), Err("v: expected to match ^a+$")),
        (json!({ "not": { "type": "string" } }), json!("x"), Err("v: must not match the schema in not")),
        (
            json!({ "anyOf": [object(json!({ "k": { "const": "a" } })), object(json!({ "k": { "const": "b" }, "n": { "type": "number" } }))] }),
            json!({ "k": "b", "n": "1" }),
            Ok(json!({ "k": "b", "n": 1 })),
        ),
        (
            json!({ "anyOf": [object(json!({ "k": { "const": "a" } })), object(json!({ "k": { "const": "b" } }))] }),
            json!({ "k": "c" }),
            Err("v.k: expected one of [\"a\",\"b\"]"),
        ),
    ];
    for (schema, value, expected) in cases {
        let definition = ToolDefinition {
            name: "t".into(),
            description: String::new(),
            parameters: json!({ "type": "object", "required": ["v"], "properties": { "v": schema } }),
            constrained_sampling: None,
            extra: Default::default(),
        };
        let arguments = json!({ "v": value }).as_object().unwrap().clone();
        match (validate_arguments(&definition, &arguments), expected) {
            (Ok(mended), Ok(expected)) => assert_eq!(mended["v"], expected, "{schema} {value}"),
            (Err(error), Err(expected)) => {
                assert_eq!(
                    error.lines().nth(1),
                    Some(format!("  - {expected}").as_str()),
                    "{schema} {value}"
                );
            }
            (result, _) => panic!("{schema} {value}: {result:?}"),
        }
    }
}

/// The schemas that Pi declares, without descriptions.
const PI_SCHEMAS: [(&str, &str); 7] = [
    (
        "read",
        r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"offset":{"type":"number"},"limit":{"type":"number"}}}"#,
    ),
    (
        "bash",
        r#"{"type":"object","required":["command"],"properties":{"command":{"type":"string"},"timeout":{"type":"number"}}}"#,
    ),
    (
        "edit",
        r#"{"type":"object","required":["path","edits"],"properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","required":["oldText","newText"],"properties":{"oldText":{"type":"string"},"newText":{"type":"string"}}}}}}"#,
    ),
    (
        "write",
        r#"{"type":"object","required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string"}}}"#,
    ),
    (
        "grep",
        r#"{"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},"ignoreCase":{"type":"boolean"},"literal":{"type":"boolean"},"context":{"type":"number"},"limit":{"type":"number"}}}"#,
    ),
    (
        "find",
        r#"{"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},"path":{"type":"string"},"limit":{"type":"number"}}}"#,
    ),
    ("ls", r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"number"}}}"#),
];

#[test]
fn the_schemas_are_pis_and_every_parameter_is_described() {
    fn strip(schema: &mut Value) {
        let Value::Object(schema) = schema else { return };
        schema.shift_remove("description");
        for (name, value) in schema.iter_mut() {
            match value {
                Value::Object(properties) if name == "properties" => {
                    properties.values_mut().for_each(|property| {
                        assert!(property["description"].is_string());
                        strip(property);
                    })
                }
                other => strip(other),
            }
        }
    }
    let tools = ToolSet::builtin();
    assert_eq!(tools.iter().count(), PI_SCHEMAS.len());
    for (tool, (name, expected)) in tools.iter().zip(PI_SCHEMAS) {
        let definition = tool.definition();
        assert_eq!(definition.name, name);
        assert!(!definition.description.is_empty() && !tool.snippet().is_empty());
        let mut schema = definition.parameters.clone();
        strip(&mut schema);
        assert_eq!(schema.to_string(), expected);
    }
}
