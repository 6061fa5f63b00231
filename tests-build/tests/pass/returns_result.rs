use std::error::Error;

#[andweorc::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let number: u8 = "7".parse()?;
    assert_eq!(number, 7);
    Ok(())
}
