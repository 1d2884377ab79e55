//! Link settings of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // A helper thread may still run when PHP unloads its modules (or `FFI` its library): the
        // code must stay mapped.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if os == "macos" {
        // The symbols of the Zend engine are found in the PHP process that loads the module.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-undefined,dynamic_lookup");
    }
}
