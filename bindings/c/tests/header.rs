//! `include/cryptmark.h` is what cbindgen makes of the sources.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_header_is_of_these_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in ["text", "error", "options", "volume", "operate", "server"] {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/cryptmark.h");
    if fs::read_to_string(&path).is_ok_and(|stored| stored == made) {
        return;
    }
    let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cryptmark.h");
    fs::write(&beside, made).unwrap();
    panic!(
        "{} is out of date: copy {} there",
        path.display(),
        beside.display()
    );
}

#[test]
fn the_manual_page_lists_every_option() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("../../crates/volume/src/request.rs");
    let source = fs::read_to_string(source).unwrap();
    let page = fs::read_to_string(root.join("man/cryptmark.3")).unwrap();
    let names = source.lines().filter_map(|line| {
        let (name, _) = line.trim().strip_prefix('"')?.split_once("\" =>")?;
        name.starts_with(char::is_alphabetic).then_some(name)
    });
    let names: Vec<_> = names.collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(page.contains(name), "{name}");
    }
}
