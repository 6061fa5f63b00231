use super::*;
use crate::names;
use object::Object;
use std::process::Command;
use tests_support::{Plugin, build_program, code_of};

#[test]
fn an_address_of_this_function_is_in_this_file() {
    let mut symbols = Symbols::of_this_program().unwrap();
    symbols.lines().unwrap();
    let here = an_address_of_this_function_is_in_this_file as fn() as usize as u64;
    let frames = symbols.program.look_up(here - symbols.bias);
    let (frame, name) = frames.last().expect("the function has a frame");
    assert!(frame.file.as_ref().unwrap().ends_with("symbols/tests.rs"), "{frames:?}");
    assert_eq!(
        name,
        "andweorc_sampling::symbols::tests::an_address_of_this_function_is_in_this_file"
    );
    assert_eq!(symbols.resolve(&[here]), None, "andweorc's own code is out of scope");
    let mut symbols = symbols.with_scope("andweorc-sampling".parse().unwrap());
    assert_eq!(&*symbols.resolve(&[here]).unwrap().function, name);
    assert_eq!(symbols.resolve(&[0, u64::MAX, symbols.bias, 1]), None, "no code");
}

#[test]
fn a_chain_is_charged_to_its_innermost_frame_and_all_its_functions() {
    let mut symbols = Symbols::of_this_program().unwrap();
    let place = Place { file: "src/stock.rs".into(), line: 3, function: "shop::update".into() };
    let frame = |function: &str, is_own| Frame { function: function.into(), is_own, line: None };
    let inner = Frame { line: Some(Arc::new(place)), ..frame("shop::update", true) };
    let outer = frame("shop::main", true);
    symbols.known.insert(1, [frame("alloc::vec::Vec::push", false)].into());
    symbols.known.insert(6, [inner.clone(), outer.clone()].into());
    symbols.known.insert(8, [outer.clone()].into());
    // Of all but the innermost, the call is the instruction before.
    let charged = symbols.resolve(&[1, 7, 9, 7]).unwrap();
    assert_eq!((&charged.line, &charged.function), (&inner.line, &inner.function));
    assert_eq!(charged.functions, [inner.function.clone(), outer.function.clone()]);
    assert_eq!(symbols.charged(&[1, 7]), inner.line.as_deref().cloned());
    assert_eq!(symbols.resolve(&[8, 7]).unwrap().line, None);
    assert_eq!(symbols.charged(&[8]), None);
    assert_eq!(symbols.resolve(&[1, 2]), None);
}

#[test]
fn without_line_information_the_error_names_what_to_add() {
    let error = SymbolError::NoLines.to_string();
    assert!(error.contains("[profile.release]\n    debug = \"line-tables-only\"\n"), "{error}");
}

/// A program with all that makes names and frames hard.
const SHOP: &str = r#"
pub mod stock {
    pub struct Cart(pub u64);
    impl Iterator for Cart {
        type Item = u64;
        #[inline(never)]
        fn next(&mut self) -> Option<u64> {
            if self.0 == 0 { return None; }
            self.0 -= 1;
            Some(std::hint::black_box(self.0))
        }
    }
    #[inline(always)]
    pub fn triple(x: u64) -> u64 {
        std::hint::black_box(x * 3) // line 15
    }
    #[inline(never)]
    pub fn update<T: Into<u64>>(t: T) -> u64 {
        let add = |x: u64| triple(x) + 1; // line 19
        add(t.into()) // line 20
    }
}
pub async fn fetch(n: u64) -> u64 {
    std::future::ready(()).await;
    stock::triple(n)
}
fn main() {
    let mut fetch = std::pin::pin!(fetch(3));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = std::future::Future::poll(fetch.as_mut(), &mut context);
    println!("{} {}", stock::update(3u32), stock::Cart(9).sum::<u64>());
}
"#;

/// Builds it as `shop` in a folder of its own, from `src/main.rs`.
fn build(flags: &[&str]) -> tempfile::TempDir {
    build_program(SHOP, flags)
}

fn open(folder: &Path) -> Symbols {
    Symbols::of_program(&folder.join("shop")).unwrap()
}

/// All that is in these functions.
fn inside(symbols: &mut Symbols, file: &Path, part: &str) -> Vec<Charged> {
    let addresses = code_of(file, part).into_iter();
    addresses.filter_map(|address| symbols.resolve(&[address])).collect()
}

/// That functions and lines of the built program are found, with names of this form.
fn check(folder: &Path, flags: &[&str], names: &[&str; 4]) {
    let [update, triple, next, fetch] = names;
    let mut symbols = open(folder);
    assert_eq!(symbols.lines().map_err(|it| it.to_string()), Ok(()), "{flags:?}");
    let exe = folder.join("shop");
    let charged = inside(&mut symbols, &exe, "update");
    let at = |line| charged.iter().find(|it| it.line.as_ref().is_some_and(|it| it.line == line));
    let inlined = at(15).unwrap_or_else(|| panic!("{flags:?}: {charged:?}"));
    assert_eq!(inlined.line.as_ref().unwrap().file, "src/main.rs", "{flags:?}");
    let functions: Vec<&str> = inlined.functions.iter().map(|it| &**it).collect();
    // The closure is part of the function that it is in.
    assert_eq!(functions, [*triple, *update], "{flags:?}");
    let charged = inside(&mut symbols, &exe, "next");
    assert!(charged.iter().any(|it| *it.function == **next), "{flags:?}: {charged:?}");
    let charged = inside(&mut symbols, &exe, "4main");
    let all = charged.iter().flat_map(|it| &it.functions);
    assert!(all.clone().any(|it| **it == **fetch), "{flags:?}: {:?}", all.collect::<Vec<_>>());
}

const LINKED: [&str; 4] =
    ["shop::stock::update", "shop::stock::triple", "shop::stock::Cart::next", "shop::fetch"];

#[test]
fn debug_information_of_each_form_is_read() {
    let full = "-Cdebuginfo=2";
    for flags in [
        &[full][..],
        &["-Cdebuginfo=1"],
        &[full, "-Cdwarf-version=5"],
        &[full, "-Csymbol-mangling-version=v0"],
        &[full, "-Crelocation-model=static"],
        &[full, "-Csplit-debuginfo=packed"],
        &[full, "-Csplit-debuginfo=unpacked"],
        &[full, "-Csplit-debuginfo=packed", "-Cdwarf-version=5"],
        &[full, "-Csplit-debuginfo=unpacked", "-Cdwarf-version=5"],
        &[full, "-Clto=fat"],
        &[full, "-Clto=thin", "-Ccodegen-units=4"],
        &[full, "-Clink-arg=-Wl,--compress-debug-sections=zlib"],
    ] {
        let folder = build(flags);
        check(folder.path(), flags, &LINKED);
    }
}

#[test]
fn line_tables_have_bare_names_that_get_the_modules_of_their_file() {
    for more in ["-Cdwarf-version=4", "-Cdwarf-version=5", "-Csplit-debuginfo=unpacked"] {
        let flags = ["-Cdebuginfo=line-tables-only", more];
        let folder = build(&flags);
        // `mod stock { .. }` is not a file, and an async body that is inlined has no name at all.
        let names =
            ["shop::stock::update", "shop::triple", "shop::stock::Cart::next", "shop::main"];
        check(folder.path(), &flags, &names);
    }
}

/// Runs a tool of binutils; prints a skip when there is none.
fn tool(name: &str, folder: &Path, args: &[&str]) -> Option<()> {
    match Command::new(name).args(args).current_dir(folder).status() {
        Ok(status) => {
            assert!(status.success(), "{name} {args:?}");
            Some(())
        }
        Err(error) => {
            println!("skipped: {name}: {error}");
            None
        }
    }
}

#[test]
fn debug_information_in_a_file_of_its_own_is_found() {
    for flags in [&["-Cdebuginfo=2"][..], &["-Cdebuginfo=2", "-Clink-arg=-Wl,--build-id=none"]] {
        let folder = build(flags);
        let path = folder.path();
        let steps = [
            &["--only-keep-debug", "shop", "shop.debug"][..],
            &["--strip-debug", "shop"],
            &["--add-gnu-debuglink=shop.debug", "shop"],
        ];
        if steps.iter().try_for_each(|args| tool("objcopy", path, args)).is_none() {
            return;
        }
        check(path, flags, &LINKED);
        std::fs::create_dir(path.join(".debug")).unwrap();
        std::fs::rename(path.join("shop.debug"), path.join(".debug/shop.debug")).unwrap();
        check(path, flags, &LINKED);
        // One of another build is not taken.
        let other = build(&["-Cdebuginfo=2", "-Copt-level=0", flags[flags.len() - 1]]);
        std::fs::copy(other.path().join("shop"), path.join(".debug/shop.debug")).unwrap();
        let error = open(path).lines().unwrap_err();
        assert!(
            matches!(&error, SymbolError::Moved(file) if file == "shop.debug"),
            "{flags:?}: {error}"
        );
    }
}

#[test]
fn debug_information_is_found_by_build_id() {
    let folder = build(&["-Cdebuginfo=2"]);
    let path = folder.path();
    let global = path.join("global");
    std::fs::create_dir_all(global.join(".build-id")).unwrap();
    if tool("objcopy", path, &["--only-keep-debug", "shop", "moved"]).is_none() {
        return;
    }
    tool("objcopy", path, &["--strip-debug", "shop"]).expect("it was there just now");
    let symbols = open(path);
    let id = symbols.program.image.object().build_id().unwrap().expect("it was asked for");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let at = global.join(".build-id").join(&hex[..2]);
    std::fs::create_dir(&at).unwrap();
    std::fs::rename(path.join("moved"), at.join(format!("{}.debug", &hex[2..]))).unwrap();
    assert!(image::separate_in(symbols.program.image, &symbols.program.path, &global).is_some());
    assert!(image::separate_in(symbols.program.image, &symbols.program.path, path).is_none());
}

#[test]
fn without_debug_information_functions_have_names_but_no_lines() {
    let folder = build(&["-Cdebuginfo=0", "-Cstrip=debuginfo"]);
    let mut symbols = open(folder.path());
    assert!(matches!(symbols.lines(), Err(SymbolError::NoLines)));
    let charged = inside(&mut symbols, &folder.path().join("shop"), "update");
    assert!(!charged.is_empty());
    for it in charged {
        assert_eq!((&*it.function, it.line, it.functions.len()), ("shop::stock::update", None, 1));
    }
    let all = inside(&mut symbols, &folder.path().join("shop"), "_ZN3std2rt");
    assert!(all.is_empty(), "std is out of scope: {all:?}");
}

#[test]
fn a_file_that_changed_is_not_looked_at() {
    let folder = build(&["-Cdebuginfo=2"]);
    let mut symbols = open(folder.path());
    let exe = folder.path().join("shop");
    assert!(!inside(&mut symbols, &exe, "update").is_empty());
    let mut symbols = symbols.with_scope("shop".parse().unwrap());
    let data = std::fs::read(&exe).unwrap();
    // In place, as a build may do.
    std::fs::write(&exe, &data).unwrap();
    let charged = inside(&mut symbols, &exe, "update");
    assert!(charged.iter().all(|it| it.line.is_none()), "{charged:?}");
}

/// Whether `theirs` is the same name as `ours`. Line tables alone name what is inlined without its
/// path, and say of a closure no more than that it is one.
fn is_name(ours: Option<&str>, theirs: Option<&str>) -> bool {
    let without_path = |(ours, theirs): (&str, &str)| {
        theirs.starts_with("{closure")
            || ours.strip_suffix(theirs).is_some_and(|path| path.ends_with("::"))
    };
    ours == theirs || ours.zip(theirs).is_some_and(without_path)
}

#[test]
fn frames_are_those_that_addr2line_finds() {
    let mut symbols = Symbols::of_this_program().unwrap();
    let theirs = addr2line::Loader::new("/proc/self/exe").unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let text = symbols.program.text[0].clone();
    let (mut same, mut other) = (0, Vec::new());
    for _ in 0..600 {
        let probe = random.u64(text.clone());
        let ours = symbols.program.look_up(probe);
        let mut frames = theirs.find_frames(probe).unwrap();
        let mut expected = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            let name = frame.function.map(|it| names::plain(&it.raw_name().unwrap()));
            let location = frame.location.unwrap();
            expected.push((
                name,
                location.file.map(str::to_owned),
                location.line.filter(|&it| it > 0),
            ));
        }
        // With line tables alone only the symbol names a function that is not inlined.
        if let Some((name @ None, ..)) = expected.last_mut() {
            *name = theirs.find_symbol(probe).map(names::plain);
        }
        let ours: Vec<_> =
            ours.into_iter().map(|(raw, name)| (Some(name), raw.file, raw.line)).collect();
        let is_same = ours.len() == expected.len()
            && ours.iter().zip(&expected).all(|(ours, theirs)| {
                // Code without a line has the one before it here, and none there.
                is_name(ours.0.as_deref(), theirs.0.as_deref())
                    && (theirs.2.is_none() || (&ours.1, ours.2) == (&theirs.1, theirs.2))
            });
        if is_same {
            same += 1;
        } else if !expected.is_empty() {
            other.push((probe, ours, expected));
        }
    }
    assert!(
        same > 400 && other.len() < 6,
        "{same} same, {} not: {:#?}",
        other.len(),
        other.first()
    );
}

fn plugin(name: &str, flags: &[&str]) -> Plugin {
    Plugin::build(name, Plugin::STOCK, flags).unwrap_or_else(|error| panic!("{flags:?}: {error}"))
}

const LINES: &str = "-Cdebuginfo=line-tables-only";

#[test]
fn a_shared_object_that_is_loaded_later_has_names() {
    let mut symbols = Symbols::of_this_program().unwrap();
    let plugin = plugin("late", &[LINES]);
    let loaded = plugin.load();
    let inside = loaded.inside();
    assert_eq!(symbols.resolve(&[inside]), None, "nobody has looked");
    let changed = symbols.refresh();
    assert!(changed.iter().any(|code| code.contains(&inside)), "{changed:x?}");
    let charged = symbols.resolve(&[inside]).expect("it is in scope");
    assert_eq!(&*charged.function, "late::stock::update");
    assert_eq!(charged.line.unwrap().file, "src/lib.rs");

    let mut symbols = symbols.with_scope("!late".parse().unwrap());
    assert_eq!(symbols.resolve(&[inside]), None, "its callers have its time");
}

#[test]
fn an_unloaded_object_is_not_looked_at_and_one_in_its_place_has_its_own_names() {
    let [first, other] = ["first", "other"].map(|name| plugin(name, &[LINES]));
    let mut symbols = Symbols::of_this_program().unwrap();
    let mut in_its_place = false;
    // Other tests may load something in between.
    for _ in 0..100 {
        let loaded = first.load();
        symbols.refresh();
        let inside = loaded.inside();
        assert_eq!(&*symbols.resolve(&[inside]).unwrap().function, "first::stock::update");
        drop(loaded);
        assert!(symbols.refresh().iter().any(|code| code.contains(&inside)));
        assert_eq!(symbols.resolve(&[inside]), None, "it is gone");

        let loaded = other.load();
        symbols.refresh();
        let inside_other = loaded.inside();
        let function = symbols.resolve(&[inside_other]).unwrap().function;
        assert_eq!(&*function, "other::stock::update");
        in_its_place = inside_other == inside;
        drop(loaded);
        if in_its_place {
            break;
        }
    }
    if !in_its_place {
        println!("skipped: the loader put no object in the place of another");
    }
}

#[test]
fn an_object_that_was_built_anew_is_read_anew() {
    let plugin = plugin("again", &[LINES]);
    let mut symbols = Symbols::of_this_program().unwrap();
    for lines in 0..3_usize {
        let source = "// A line.\n".repeat(lines) + Plugin::STOCK;
        plugin.rebuild(&source, &[LINES]).unwrap();
        let loaded = plugin.load();
        symbols.refresh();
        let inside = loaded.inside();
        let near = (inside..inside + 64).filter_map(|at| symbols.charged(&[at]));
        let near: Vec<u32> = near.map(|place| place.line).collect();
        assert!(near.contains(&(5 + lines as u32)), "{lines}: {near:?}");
    }
}

#[test]
fn a_file_that_is_not_the_loaded_one_is_not_read() {
    let plugin = plugin("replaced", &[LINES]);
    let loaded = plugin.load();
    plugin.rebuild(&Plugin::STOCK.replace("inside", "within"), &["-Cdebuginfo=2"]).unwrap();
    let mut symbols = Symbols::of_this_program().unwrap();
    assert_eq!(symbols.resolve(&[loaded.inside()]), None);
}

#[test]
fn shared_objects_without_line_tables_have_the_names_of_their_symbols() {
    let whose = |flags: &[&str], scope: &str| {
        let plugin = plugin("bare", flags);
        let loaded = plugin.load();
        let mut symbols = Symbols::of_this_program().unwrap().with_scope(scope.parse().unwrap());
        let charged = symbols.resolve(&[loaded.inside()]);
        symbols.resolve(&[libc::getpid as *const () as u64]);
        let has_line = charged.as_ref().is_some_and(|it| it.line.is_some());
        let without: &[PathBuf] = if has_line { &[] } else { &[plugin.path()] };
        assert_eq!(symbols.objects_without_lines(), without, "{flags:?}");
        charged.map(|it| (it.function.to_string(), it.line.is_some()))
    };
    let named = |has_line| Some(("bare::stock::update".to_owned(), has_line));
    for packed in ["-Csplit-debuginfo=packed", "-Csplit-debuginfo=unpacked"] {
        assert_eq!(whose(&["-Cdebuginfo=2", packed], "bare"), named(true), "{packed}");
    }
    assert_eq!(whose(&["-Cdebuginfo=0", "-Cstrip=debuginfo"], "bare"), named(false));
    assert_eq!(whose(&["-Cdebuginfo=0", "-Cstrip=debuginfo"], ""), None, "not the crate of main");
    assert_eq!(whose(&["-Cstrip=symbols"], "bare"), None);
}

#[test]
fn debug_information_of_a_shared_object_in_a_file_of_its_own_is_found() {
    let plugin = plugin("moved", &["-Cdebuginfo=2"]);
    let folder = plugin.path().parent().unwrap().to_owned();
    for args in [
        &["--only-keep-debug", "libmoved.so", "moved.debug"][..],
        &["--strip-debug", "libmoved.so"],
        &["--add-gnu-debuglink=moved.debug", "libmoved.so"],
    ] {
        if tool("objcopy", &folder, args).is_none() {
            return;
        }
    }
    let loaded = plugin.load();
    let mut symbols = Symbols::of_this_program().unwrap();
    assert_eq!(symbols.charged(&[loaded.inside()]).unwrap().function, "moved::stock::update");
    assert_eq!(symbols.objects_without_lines(), [] as [PathBuf; 0]);
}

#[test]
fn no_file_of_a_shared_object_stays_open() {
    let plugin = plugin("closed", &[LINES]);
    let mut symbols = Symbols::of_this_program().unwrap();
    let loaded = plugin.load();
    symbols.refresh();
    assert!(symbols.charged(&[loaded.inside()]).is_some());
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    assert_eq!(open.filter(|path| *path == plugin.path()).count(), 0);
}

#[test]
fn a_c_library_is_nobodys_own_crate_unless_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libhalf.so");
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let source = "
static inline __attribute__((always_inline)) unsigned long third(unsigned long x) {
    unsigned long y = 1;
    while (x--) y = y * 31 ^ x;
    return y;
}
unsigned long half(unsigned long x) { return third(x) / 2; }
";
    std::fs::write(folder.path().join("src/half.c"), source).unwrap();
    let flags = ["-g", "-O1", "-shared", "-fPIC", "-o", "libhalf.so"];
    // By its whole path: the modules of a Rust file would be taken from it.
    let source = folder.path().join("src/half.c");
    let args: Vec<&str> = flags.into_iter().chain(source.to_str()).collect();
    if tool("cc", folder.path(), &args).is_none() {
        return;
    }
    let loaded = tests_support::Loaded::open(&library);
    let inside = loaded.address("half");
    let mut symbols = Symbols::of_this_program().unwrap();
    assert_eq!(symbols.resolve(&[inside]), None);
    let mut symbols = symbols.with_scope("re:^(half|third)$".parse().unwrap());
    let all: Vec<Charged> = (inside..inside + 48).filter_map(|at| symbols.resolve(&[at])).collect();
    let inlined = |it: &Charged| it.functions.iter().map(|it| &**it).eq(["third", "half"]);
    assert!(all.iter().any(inlined), "{all:?}");
}

#[test]
fn the_error_names_what_was_done_to_the_program() {
    let lack = |flags: &[&str]| open(build(flags).path()).lines().unwrap_err();
    assert!(matches!(lack(&["-Cdebuginfo=0", "-Cstrip=debuginfo"]), SymbolError::NoLines));
    for flags in [["-Cdebuginfo=0", "-Cstrip=symbols"], ["-Cdebuginfo=2", "-Cstrip=symbols"]] {
        let lack = lack(&flags);
        assert!(matches!(lack, SymbolError::Stripped));
        let told = lack.to_string();
        assert!(told.contains("`strip`") && told.contains("line-tables-only"), "{told}");
    }
}
