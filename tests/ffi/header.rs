//! Tests that the committed header is the one that is generated from the sources.

use std::path::{Path, PathBuf};

/// In the package of the FFI bridge, which a site installs alone. C programs include the same file.
const PLACE: &str = "php-ffi/nrllm_runtime.h";

/// In this order, so that a reader meets the whole before its parts.
const SOURCES: [&str; 6] = ["library", "error", "memory", "runtime", "failure", "lease"];

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let sources = top().join("src/ffi");
    let config = cbindgen::Config::from_file(sources.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES {
        let file = sources.join(format!("{name}.rs"));
        if file.exists() {
            builder = builder.with_src(file);
        }
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_committed_header_is_what_the_sources_make() {
    let generated = generated();
    let place = top().join(PLACE);
    if std::env::var_os("NRLLM_WRITE_HEADER").is_some() {
        std::fs::write(&place, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        committed == generated,
        "{PLACE} is out of date: run this test with NRLLM_WRITE_HEADER=1"
    );
}

#[test]
fn the_header_has_no_preprocessor_lines() {
    // FFI::cdef() knows none.
    assert!(!generated().lines().any(|line| line.trim_start().starts_with('#')));
}

#[test]
fn the_header_names_every_function_of_the_library() {
    let mut exported = Vec::new();
    for file in std::fs::read_dir(top().join("src/ffi")).unwrap().map(|entry| entry.unwrap().path())
    {
        if file.extension().is_some_and(|extension| extension == "rs") {
            exported.extend(functions(&file));
        }
    }
    assert!(exported.len() > 20);
    let header = generated();
    for function in exported {
        assert!(header.contains(&format!("{function}(")), "{function}");
    }
}

fn functions(file: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(file).unwrap();
    let names = source.split("extern \"C\" fn ").skip(1);
    names.map(|rest| rest.split('(').next().unwrap().to_owned()).collect()
}
