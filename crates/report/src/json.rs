//! Runs as JSON, schema `cryptmark/2`.

use lab::record::Run;

/// One run as an object, any other number of runs as an array; indented, with
/// a final newline.
///
/// Fails only on what JSON cannot express as a string or number key.
pub fn render(runs: &[Run]) -> Result<String, serde_json::Error> {
    let mut text = match runs {
        [run] => serde_json::to_string_pretty(run)?,
        runs => serde_json::to_string_pretty(runs)?,
    };
    text.push('\n');
    Ok(text)
}
