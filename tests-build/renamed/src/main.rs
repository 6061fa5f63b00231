//! A program that knows andweorc by another name, and says so nowhere but in its `Cargo.toml`.

#[profiler::main]
async fn main() {
    profiler::spawn(async {}).await.expect("the task does not panic");
}

#[cfg(test)]
mod tests {
    #[profiler::test]
    async fn attribute_of_a_renamed_dependency_finds_it() {
        assert_eq!(profiler::spawn(async { 1 }).await.unwrap(), 1);
    }
}
