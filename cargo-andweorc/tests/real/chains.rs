//! Call chains of CPU time, of a program that `cargo andweorc run` builds: with frame pointers.

use crate::Shop;
use crate::common::stdout;
use andweorc_profile::Profile;

#[test]
fn call_chains_are_those_of_the_source_and_exported() {
    let shop = Shop::new("commands");
    let port = shop.port.to_string();
    let load = format!("target/andweorc/build/debug/shop load {port}");
    let run = ["run", "--dev", "--duration", "20s", "--targets", "functions", "--load", &load];
    shop.ok(&[&run[..], &["--", "serve", &port]].concat());
    let profile = Profile::read(&shop.profiles().join("shop.jsonl")).unwrap();
    let record = profile.runs.iter().flat_map(|run| &run.stacks).next().expect("it was sampled");
    assert!(record.samples > 20 && record.cpu_ns > 0 && record.sample_ns > 0, "{record:?}");
    let (cut_off, early) = (record.cut_off, record.ended_early);
    assert!(cut_off + early < record.samples / 10, "{record:?}");
    println!("{} samples, {cut_off} cut off, {early} ended early", record.samples);
    assert_eq!(record.merged, 0);

    let text = stdout(&shop.ok(&["export", "--format", "folded", "--of", "cpu"]));
    let lines = || text.lines().map(|line| line.rsplit_once(' ').unwrap());
    let sum = |is: &dyn Fn(&str) -> bool| -> u64 {
        lines().filter(|(chain, _)| is(chain)).map(|(_, ns)| ns.parse::<u64>().unwrap()).sum()
    };
    let all = sum(&|_| true);
    // The handler is a block in `main`, and the task is called by its place. How much of the time
    // andweorc and tracing have beside it is that of a build without optimisation.
    let work = sum(&|chain| chain.contains(";shop::work"));
    let stock = sum(&|chain| chain.contains(";stock;shop::main;shop::order;shop::work"));
    assert!(stock > work / 2 && work > all / 10, "{stock} of {work} of {all}: {text}");
    assert!(sum(&|chain| chain.starts_with("thread ")) < all / 2, "tasks are known: {text}");
}
