//! Cost of symbols: opening them must take less than 100 ms and 64 MB, however large the program
//! is.
//!
//! `cargo bench -p andweorc-sampling --features symbols --bench symbols -- PROGRAM..`: programs
//! with debug information; without any, this bench itself. Time in ms and resident memory in MB
//! (own, and of mapped files), after opening, after the first address and after 1, 100 and 2000
//! further ones at random.

use andweorc_sampling::symbols::Symbols;
use object::{Object, ObjectSection};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Limits of opening.
const MOST_MS: f64 = 100.0;
const MOST_MB: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo says `--bench`.
    let mut programs: Vec<OsString> = env::args_os().skip(1).filter(|it| it != "--bench").collect();
    if programs.is_empty() {
        programs.push(env::current_exe()?.into());
    }
    programs.iter().try_for_each(|program| measure(Path::new(program)))
}

fn measure(program: &Path) -> Result<(), Box<dyn Error>> {
    println!("{}, {} MB", program.display(), fs::metadata(program)?.len() >> 20);
    let text = {
        let cache = object::ReadCache::new(fs::File::open(program)?);
        let file = object::File::parse(&cache)?;
        let section = file.section_by_name(".text").ok_or("it has no code")?;
        section.address()..section.address() + section.size()
    };
    let before = resident()?;
    let begun = Instant::now();
    let show = |what: &str| -> Result<(f64, u64), Box<dyn Error>> {
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        let now = resident()?;
        let [own, mapped] = [0, 1].map(|i| now[i].saturating_sub(before[i]));
        println!("  {what:<16} {ms:>8.2} ms, {own:>4} MB own, {mapped:>4} MB mapped");
        Ok((ms, own + mapped))
    };
    let mut symbols = Symbols::of_program(program)?.with_scope("re:.".parse()?);
    let (ms, mb) = show("opened")?;
    if ms > MOST_MS || mb > MOST_MB {
        return Err(format!("opening took {ms:.0} ms and {mb} MB").into());
    }
    let mut random = fastrand::Rng::with_seed(1);
    let mut found = 0;
    for i in 0..=2001 {
        found += usize::from(symbols.resolve(&[random.u64(text.clone())]).is_some());
        if [0, 1, 101, 2001].contains(&i) {
            show(&format!("{} addresses", i + 1))?;
        }
    }
    println!("  {found} of 2002 have a function");
    Ok(())
}

/// Resident memory in MB: own, and of mapped files.
fn resident() -> Result<[u64; 2], Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = |key: &str| -> Result<u64, Box<dyn Error>> {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
        Ok(line.trim_end_matches("kB").trim().parse::<u64>()? / 1024)
    };
    Ok([value("RssAnon:")?, value("RssFile:")?])
}
