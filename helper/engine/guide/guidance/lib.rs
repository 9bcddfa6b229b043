//! A static library for fm-engine-llama: llguidance's C API as it is, and `fm_schema_check` (guidance.h).
pub use llguidance::ffi::*;

use serde_json::Value;
use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

struct NoRetrieval;

impl jsonschema::Retrieve for NoRetrieval {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is outside of the schema").into())
    }
}

/// Writes the `$schema` of the root as the validator knows it: fm_schema_prepare takes either scheme, and the latest draft
/// without a date.
fn name_draft(schema: &mut Value) {
    let Some(uri) = schema.get_mut("$schema") else { return };
    let text = uri.as_str().unwrap_or_default().trim_end_matches('#').to_string();
    let rest = text.trim_start_matches("https:").trim_start_matches("http:");
    *uri = match rest {
        "//json-schema.org/schema" => "https://json-schema.org/draft/2020-12/schema".into(),
        _ if rest.contains("/draft-0") => format!("http:{rest}").into(),
        _ => format!("https:{rest}").into(),
    };
}

const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "$comment",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
];

/// The validator refuses a schema whose annotations are not of their type, and fm_schema_prepare does not look at them.
/// What is an object or a boolean stays: it may be the schema of a property of that name.
fn drop_annotations(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|key, value| {
                value.is_object() || value.is_boolean() || !ANNOTATIONS.contains(&key.as_str())
            });
            let schemas = members.iter_mut().filter(|(key, _)| *key != "const" && *key != "enum");
            schemas.for_each(|(_, value)| drop_annotations(value));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_annotations),
        _ => {}
    }
}

/// The first thing in `instance` that `schema` does not allow. It comes without the instance's text, except its keys.
fn first_error(schema: &[u8], instance: &[u8]) -> Result<Option<String>, String> {
    let mut schema: Value = serde_json::from_slice(schema).map_err(|e| e.to_string())?;
    name_draft(&mut schema);
    drop_annotations(&mut schema);
    let instance: Value = serde_json::from_slice(instance).map_err(|e| e.to_string())?;
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .with_retriever(NoRetrieval)
        .build(&schema)
        .map_err(|e| e.to_string())?;
    let found = validator.validate(&instance).err();
    Ok(found.map(|e| format!("{}: {}", e.schema_path, e.masked())))
}

/// # Safety
/// As guidance.h has it.
#[no_mangle]
pub unsafe extern "C" fn fm_schema_check(
    schema: *const c_char,
    schema_len: usize,
    instance: *const c_char,
    instance_len: usize,
    reason: *mut c_char,
    reason_size: usize,
) -> i32 {
    let schema = std::slice::from_raw_parts(schema.cast::<u8>(), schema_len);
    let instance = std::slice::from_raw_parts(instance.cast::<u8>(), instance_len);
    let result = catch_unwind(AssertUnwindSafe(|| first_error(schema, instance)))
        .unwrap_or_else(|_| Err("the check failed".to_string()));
    let (status, text) = match result {
        Ok(None) => (0, String::new()),
        Ok(Some(error)) => (1, error),
        Err(error) => (-1, error),
    };
    let mut len = text.len().min(reason_size - 1);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    std::ptr::copy_nonoverlapping(text.as_ptr(), reason.cast::<u8>(), len);
    *reason.add(len) = 0;
    status
}
