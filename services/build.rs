//! Generates the gRPC code of `proto/echo.proto`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["proto/echo.proto"], ["proto"])?;
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    Ok(())
}
