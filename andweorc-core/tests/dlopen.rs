//! Shared objects that the program loads while it is profiled.
#![cfg(not(loom))]

use andweorc_core::clock;
use andweorc_core::point::point;
use andweorc_core::sampler::{Event, Found, Sampling};
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_core::symbols::Symbols;
use andweorc_core::target::{Target, target};
use andweorc_core::thread;
use andweorc_core::time::Nanos;
use andweorc_profile::{PointKind, Profile, TargetKind};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tests_support::{Loaded, Plugin};

/// There is one sampler, and one session, at a time.
static ALONE: Mutex<()> = Mutex::new(());

const LINES: &str = "-Cdebuginfo=line-tables-only";
const FRAMES: &str = "-Cforce-frame-pointers=yes";

fn plugin(name: &str, source: &str, flags: &[&str]) -> Plugin {
    Plugin::build(name, source, flags).unwrap_or_else(|error| panic!("{flags:?}: {error}"))
}

fn function(name: &str) -> &'static Target {
    target(TargetKind::Function, name, None, None)
}

/// Calls a function of a plugin again and again, until it took so much CPU time.
#[inline(never)]
fn calls_a_plugin(loaded: &Loaded, name: &str, argument: u64, time: Nanos) {
    // SAFETY: it is of this type, and loaded.
    let function = unsafe { loaded.function(name) };
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < time {
        black_box(function(argument));
    }
}

/// Runs on a thread that is sampled, with this scope, and tells what was found. `None` where
/// threads can't be sampled.
fn sampled(scope: &str, run: impl FnOnce() + Send) -> Option<Found> {
    thread::enable();
    let symbols = Symbols::of_this_program().unwrap().with_scope(scope.parse().unwrap());
    let sampling = Sampling::start(symbols, Event::default())
        .inspect_err(|error| println!("skipped: {error}"))
        .ok()?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            thread::register();
            run();
        });
    });
    Some(sampling.take())
}

#[test]
fn code_that_is_loaded_while_threads_are_sampled_has_names_and_lines() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = plugin("loaded_late", Plugin::STOCK, &[LINES, FRAMES]);
    let name = "loaded_late::stock::update";
    let found = sampled("", || {
        let loaded = plugin.load();
        // The first samples may come before anybody looked at what was loaded.
        let begun = Instant::now();
        while function(name).count() == 0 && begun.elapsed() < Duration::from_secs(60) {
            calls_a_plugin(&loaded, "run", 10_000, Nanos::from_millis(100));
        }
    });
    let Some(found) = found else { return };
    assert!(function(name).count() > 0, "{found:?}");
    let lines = found.lines.keys().filter(|place| place.function == name);
    assert!(lines.clone().any(|place| place.file == "src/lib.rs"), "{found:?}");
}

#[test]
fn code_of_a_plugin_out_of_scope_is_charged_to_its_caller() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = plugin("not_mine", Plugin::STOCK, &[LINES, FRAMES]);
    let time = Nanos::from_millis(200);
    let caller = function("dlopen::calls_a_plugin");
    let before = caller.busy_ns();
    let found = sampled("dlopen", || {
        calls_a_plugin(&plugin.load(), "run", 10_000, time);
    });
    let Some(found) = found else { return };
    let charged = caller.busy_ns() - before;
    // Samples are lost when a machine is busy, not added.
    assert!(charged > 0 && found.samples > 0, "{charged} ns of {found:?}");
    assert_eq!(function("not_mine::stock::update").count(), 0);
    assert!(found.lines.keys().all(|place| !place.function.starts_with("not_mine")), "{found:?}");
}

/// `spin` has in the register of frame pointers what it is given, for so many rounds, as C code
/// without frame pointers may.
const WITHOUT_FRAMES: &str = r#"
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn spin(_: u64) -> u64 {
    core::arch::naked_asm!(
        "push rbp", "mov rcx, [rdi]", "mov rbp, [rdi + 8]", "2:", "dec rcx", "jnz 2b", "pop rbp", "ret"
    )
}
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn spin(_: u64) -> u64 {
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!", "ldr x1, [x0]", "ldr x29, [x0, #8]", "2:", "subs x1, x1, #1", "b.ne 2b",
        "ldp x29, x30, [sp], #16", "ret"
    )
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(no_mangle)]
pub extern "C" fn spin(x: u64) -> u64 {
    x
}
"#;

#[test]
fn in_code_without_frame_pointers_the_walk_stays_on_the_stack() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = plugin("frameless", WITHOUT_FRAMES, &[]);
    let found = sampled("re:.", || {
        let loaded = plugin.load();
        let local = [u64::MAX, 0x1234_5678_9abc_def0, 0, 1];
        let boxed = Box::new(local);
        let near = |local: &[u64; 4]| local.as_ptr() as u64;
        let end = stack_end();
        for frame in [
            0,
            1,
            4096,
            u64::MAX,
            u64::MAX - 7,
            i64::MAX as u64 - 7,
            near(&local),
            near(&local) + 4,
            near(&boxed),
            loaded.address("spin"),
            end,
            end - 8,
            end - 16,
            end - 24,
            end + (1 << 40),
        ] {
            let argument = [200_000, frame];
            calls_a_plugin(&loaded, "spin", argument.as_ptr() as u64, Nanos::from_millis(20));
            black_box((&local, &boxed, &argument));
        }
    });
    let Some(found) = found else { return };
    assert!(found.samples > 0, "{found:?}");
}

/// The end of the calling thread's stack.
fn stack_end() -> u64 {
    let here = 0_u8;
    let here = &raw const here as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ends = maps.lines().filter_map(|line| {
        let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(begin)?..number(end)?)
    });
    let stack = ends.into_iter().find(|range| range.contains(&here));
    stack.expect("a thread has a stack").end
}

/// The libraries that this test was built with, the newest first.
fn libraries() -> Vec<PathBuf> {
    let folder = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(folder.parent().unwrap()).unwrap();
    let mut found: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libandweorc_core-") && name.ends_with(".rlib")
        })
        .collect();
    found.sort_by_key(|path| {
        std::cmp::Reverse(std::fs::metadata(path).unwrap().modified().unwrap())
    });
    found
}

/// A plugin that andweorc is linked into, stripped of all that can be stripped.
fn with_a_copy() -> Plugin {
    const SOURCE: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn run(rounds: u64) -> u64 {
    let kind = andweorc_core::point::PointKind::Progress;
    andweorc_core::point::point(kind, "plugin", None, None, true).hit();
    rounds
}
"#;
    let mut refused = Vec::new();
    for library in libraries() {
        let folder = library.parent().unwrap_or(Path::new(""));
        // Cargo has macros there when it was told for which machine to build.
        let host = folder.join("../../../debug/deps");
        let flags = [
            format!("--extern=andweorc_core={}", library.display()),
            format!("-Ldependency={}", folder.display()),
            format!("-Ldependency={}", host.display()),
            "-Cstrip=symbols".to_owned(),
            "-Clink-arg=-Wl,--gc-sections".to_owned(),
        ];
        match Plugin::build("with_a_copy", SOURCE, &flags.each_ref().map(String::as_str)) {
            Ok(plugin) => return plugin,
            // One of an older build, whose own libraries are gone.
            Err(error) => refused.push(error),
        }
    }
    panic!("no library of this test can be linked: {refused:?}");
}

/// Holds a session while `work` is done over and over, until it has taken note of something with
/// these words, or a minute is over. Returns all its notes, and the report.
fn notes_of_a_session(
    mut settings: Settings,
    words: &str,
    mut work: impl FnMut(&[String]) + Send,
) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("profile.jsonl");
    settings.out = Some(out.clone());
    settings.duration = Duration::from_secs(120);
    let notes = || {
        let run = Profile::read(&out).ok().and_then(|mut profile| profile.runs.pop());
        let notes = run.map(|run| run.notes).unwrap_or_default();
        notes.into_iter().map(|note| note.text).collect::<Vec<String>>()
    };
    let session = Session::start(settings).unwrap();
    let item = point(PointKind::Progress, "item", None, None, true);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            thread::register();
            loop {
                let noted = notes();
                let told = noted.iter().any(|note| note.contains(words));
                if told || begun.elapsed() > Duration::from_secs(60) {
                    break;
                }
                work(&noted);
                item.hit();
                thread::catch_up();
            }
        });
    });
    let outcome = session.finish("seen enough");
    (notes(), outcome.report().to_owned())
}

#[test]
fn the_report_tells_of_a_plugin_with_a_copy_of_andweorc() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = with_a_copy();
    let begun = Instant::now();
    let mut loaded = None;
    let name = "libwith_a_copy.so";
    let (notes, report) = notes_of_a_session(Settings::default(), name, |notes| {
        std::thread::sleep(Duration::from_millis(5));
        if loaded.is_none() && begun.elapsed() > Duration::from_millis(1500) {
            assert!(notes.iter().all(|note| !note.contains("copy")), "{notes:?}");
            // SAFETY: it is of this type, and loaded.
            let run = unsafe { loaded.insert(plugin.load()).function("run") };
            run(1);
        }
    });
    let of_it: Vec<_> = notes.iter().filter(|note| note.contains(name)).collect();
    assert_eq!(of_it.len(), 1, "{notes:?}");
    for part in ["copy of andweorc", env!("CARGO_PKG_VERSION"), "nobody counts", "extern \"C\""] {
        assert!(of_it[0].contains(part), "{part} in {of_it:?}");
    }
    assert!(report.contains(name), "{report}");
}

#[test]
fn a_plugin_in_scope_that_has_no_names_is_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = plugin("nameless", Plugin::STOCK, &["-Cstrip=symbols", FRAMES]);
    let loaded = plugin.load();
    let mut settings = Settings::default();
    settings.scope = "nameless".parse().unwrap();
    settings.targets = vec!["functions".to_owned()];
    let (notes, _) = notes_of_a_session(settings, "ANDWEORC_TARGETS", |_| {
        calls_a_plugin(&loaded, "run", 10_000, Nanos::from_millis(20));
    });
    let told = |words: &str| notes.iter().any(|note| note.contains(words));
    if told("SIGPROF") || told(" no sample was taken") {
        return println!("skipped: {notes:?}");
    }
    assert!(told("ANDWEORC_TARGETS, `functions`: no function"), "{notes:?}");
    assert!(told("libnameless.so`. Build them with"), "{notes:?}");
}
