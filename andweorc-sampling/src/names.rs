//! Names of functions as a person would write them.
//!
//! One name stands for a function, all its instances, its closures and its async body:
//! `shop::stock::update`. A method is named by its type, `shop::Cart::next`, not by the trait and
//! the type at once; by its trait where the type has no path of its own (`u32`, `[T]`, `T`), or is
//! std's and the trait is not.

use andweorc_profile::settings::{crate_of, is_std};

/// The name of a function, given its mangled name or one as DWARF writes it.
#[cfg(feature = "symbols")]
pub(crate) fn plain(raw: &str) -> String {
    match rustc_demangle::try_demangle(raw) {
        Ok(name) => of_path(&format!("{name:#}")),
        Err(_) => of_path(raw),
    }
}

/// Types that hold a future and are none of the program's own work.
const HOLDERS: [&str; 5] = [
    "core::pin::Pin<",
    "alloc::boxed::Box<",
    "tracing::instrument::Instrumented<",
    "tracing::instrument::WithDispatch<",
    "tokio::task::coop::unconstrained::Unconstrained<",
];

/// The function that a task runs, by the type of its future or of what it calls: `handle`,
/// `Shop::run`. Async blocks and closures are called by the function that they are written in.
///
/// `None` of futures that are types of their own, of pointers and trait objects, and of `main`, of
/// which the main task is called.
pub fn of_task(of: &str) -> Option<String> {
    let mut of = of;
    while let Some(held) = HOLDERS.iter().find_map(|holder| of.strip_prefix(holder)) {
        of = held.strip_suffix('>')?;
    }
    let path = of_path(of);
    let mut parts = path.rsplit("::");
    // Types begin with a capital, and pointers to functions have brackets.
    let is_function = |name: &&str| {
        let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_word && !name.is_empty() && !name.starts_with(char::is_uppercase) && *name != "main"
    };
    let name = parts.next().filter(is_function)?;
    let is_type = |part: &&str| part.starts_with(char::is_uppercase);
    Some(parts.next().filter(is_type).map_or(name.to_owned(), |of| format!("{of}::{name}")))
}

/// Whether the last part of a name as DWARF writes it is a closure or an async body, which has no
/// name of its own.
pub(crate) fn is_nameless(raw: &str) -> bool {
    raw.starts_with('{')
}

/// Returns what is left of a path without generics, closures, impls and suffixes of the compiler.
fn of_path(path: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (i, part) in split(path, "::").into_iter().enumerate() {
        if let Some(inner) = qualified(part) {
            match (i, inner.strip_prefix("impl ")) {
                // `<T as Trait>::f` and `<T>::f`.
                (0, None) => {
                    let (subject, of) = pair(inner, " as ");
                    if let Some(closure) = of.and_then(|_| closure(subject)) {
                        return closure;
                    }
                    parts = vec![owner(subject, of)];
                }
                // `shop::cart::<impl Trait for T>::f`: where the impl is written says nothing.
                (_, Some(implementation)) => {
                    parts = vec![match pair(implementation, " for ") {
                        (of, Some(subject)) => owner(subject, Some(of)),
                        (subject, None) => owner(subject, None),
                    }];
                }
                // `sum::<u32>`.
                (_, None) => {}
            }
            continue;
        }
        let end = part.find(['<', '{', '.']).unwrap_or(part.len());
        // `_` is where derives write their impls.
        if !part[..end].is_empty() && &part[..end] != "_" {
            parts.push(part[..end].to_owned());
        }
    }
    if parts.is_empty() { path.to_owned() } else { parts.join("::") }
}

/// The inside of `<...>`, when that is all there is.
fn qualified(part: &str) -> Option<&str> {
    part.strip_prefix('<')?.strip_suffix('>')
}

/// The function of a closure or async body; `None` for any other type.
fn closure(subject: &str) -> Option<String> {
    let last = split(reference_of(subject), "::").pop()?;
    is_nameless(last).then(|| of_path(reference_of(subject)))
}

/// Returns what a method belongs to: its type, or the trait.
fn owner(subject: &str, of: Option<&str>) -> String {
    let subject = reference_of(subject);
    let Some(of) = of.map(of_path) else { return of_path(subject) };
    let is_path = split(subject, "::").len() > 1 && !subject.starts_with(['(', '[']);
    let name = of_path(subject);
    let foreign = |name: &str| crate_of(name).is_none_or(is_std);
    if !is_path || (foreign(&name) && !foreign(&of)) { of } else { name }
}

/// A type without the references and pointers to it.
fn reference_of(mut subject: &str) -> &str {
    loop {
        let inner = subject.trim_start_matches('&');
        let inner = ["mut ", "dyn ", "*const ", "*mut "]
            .into_iter()
            .fold(inner, |inner, word| inner.strip_prefix(word).unwrap_or(inner));
        if inner == subject {
            return split(subject, " + ").first().copied().unwrap_or(subject);
        }
        subject = inner;
    }
}

/// The two sides of a word outside of brackets.
fn pair<'a>(text: &'a str, word: &str) -> (&'a str, Option<&'a str>) {
    match split(text, word)[..] {
        [left, right, ..] => (left, Some(right)),
        _ => (text, None),
    }
}

/// The parts of a text between separators that are outside of brackets.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut begin, mut at) = (Vec::new(), 0_u32, 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if depth == 0 && bytes[at..].starts_with(separator.as_bytes()) {
            parts.push(&text[begin..at]);
            at += separator.len();
            begin = at;
            continue;
        }
        match bytes[at] {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            // An arrow closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    parts.push(&text[begin..]);
    parts
}

/// A name for a function of which only the last part is known: the modules are those of its file.
///
/// `root` is the folder and the crate of the program's part that it is in: `("/home/me/shop/src/",
/// "shop")`.
#[cfg(feature = "symbols")]
pub(crate) fn in_file(last: &str, file: &str, root: Option<(&str, &str)>) -> String {
    let last = of_path(last);
    let Some((folder, inside)) = file.rsplit_once("/src/") else { return last };
    let package = match root {
        Some((root, name)) if root.trim_end_matches('/').strip_suffix("/src") == Some(folder) => {
            name.to_owned()
        }
        _ => without_version(folder.rsplit('/').next().unwrap_or(folder)).replace('-', "_"),
    };
    let inside = inside.strip_prefix("bin/").unwrap_or(inside);
    let modules = inside.strip_suffix(".rs").unwrap_or(inside).split('/');
    let modules = modules.filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    let parts: Vec<&str> = [package.as_str()].into_iter().chain(modules).chain([&*last]).collect();
    parts.join("::")
}

/// The name of a package of a registry, whose folder has its version too.
#[cfg(feature = "symbols")]
fn without_version(folder: &str) -> &str {
    let is_version = |text: &str| {
        let parts = text.split(['.', '-', '+']).take(3);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        text.matches('.').count() >= 2 && parts.filter(|part| is_number(part)).count() == 3
    };
    let dashes = folder.match_indices('-').map(|(at, _)| at);
    let at = dashes.into_iter().find(|&at| is_version(&folder[at + 1..]));
    at.map_or(folder, |at| &folder[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "symbols")]
    #[test]
    fn names_are_as_a_person_would_write_them() {
        for (raw, expected) in [
            // Legacy mangling.
            ("_ZN1p5stock6update17h24c8c9ce7d793b7bE", "p::stock::update"),
            (
                "_ZN1p5stock6update28_$u7b$$u7b$closure$u7d$$u7d$17ha4125de1bb78d214E",
                "p::stock::update",
            ),
            (
                "_ZN1p5stock5fetch28_$u7b$$u7b$closure$u7d$$u7d$17h1aed7f3f252fbdd8E",
                "p::stock::fetch",
            ),
            (
                "_ZN73_$LT$p..stock..Cart$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h62abee582e8a43d1E",
                "p::stock::Cart::next",
            ),
            (
                "_ZN54_$LT$u64$u20$as$u20$core..iter..traits..accum..Sum$GT$3sum28_$u7b$$u7b$closure$u7d$$u7d$17he012f980fa05134aE",
                "core::iter::traits::accum::Sum::sum",
            ),
            (
                "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h1303a7cc18a1a907E",
                "std::rt::lang_start",
            ),
            (
                "_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h0123456789abcdefE",
                "core::ops::function::FnOnce::call_once",
            ),
            ("_ZN4shop4main17h0123456789abcdefE.llvm.123456", "shop::main"),
            ("_ZN4shop4main17h0123456789abcdefE.cold", "shop::main"),
            // v0 mangling.
            ("_RNvNtCs1234_4shop5stock6update", "shop::stock::update"),
            ("_RNCNvNtCs1234_4shop5stock6update0B7_", "shop::stock::update"),
            ("_RINvNtCs1234_4shop5stock6updatemEB6_", "shop::stock::update"),
            ("_RNvMNtCs1234_4shop5stockNtB2_4Cart5total", "shop::stock::Cart::total"),
            (
                "_RNvXNtCs1234_4shop5stockNtB2_4CartNtNtCs5678_4core4iter8Iterator4next",
                "shop::stock::Cart::next",
            ),
            ("_RNvXCs1234_4shopmNtB2_5Price5price", "shop::Price::price"),
            // Demangled: what a person never writes.
            ("shop::stock::update::{closure#0}::{closure#1}", "shop::stock::update"),
            ("shop::stock::update::{{closure}}::{{closure}}", "shop::stock::update"),
            ("shop::stock::update::{async_fn#0}", "shop::stock::update"),
            ("shop::stock::update::{async_fn_env#0}", "shop::stock::update"),
            ("shop::stock::update::{async_block#2}", "shop::stock::update"),
            ("shop::stock::{impl#3}::update", "shop::stock::update"),
            ("shop::stock::{impl#0}::update<u32>::{closure_env#0}", "shop::stock::update"),
            ("shop::stock::TABLE::{constant#0}", "shop::stock::TABLE"),
            ("shop::sum::<u32, alloc::vec::Vec<(u8, u16)>>", "shop::sum"),
            ("shop::sum::<fn(u32) -> u8>::{closure#0}", "shop::sum"),
            ("<shop::Cart as core::iter::Iterator>::next", "shop::Cart::next"),
            ("<shop::Cart<T> as core::iter::Iterator>::next::{closure#0}", "shop::Cart::next"),
            ("<&mut shop::Cart as core::iter::Iterator>::next", "shop::Cart::next"),
            ("<shop::Cart<[u8; 4]>>::total", "shop::Cart::total"),
            ("<dyn shop::Price + core::marker::Send as shop::Total>::total", "shop::Price::total"),
            ("<&dyn shop::Price as shop::Total>::total", "shop::Price::total"),
            (
                "<alloc::boxed::Box<dyn core::ops::FnOnce() -> u8> as core::ops::FnOnce<()>>::call_once",
                "alloc::boxed::Box::call_once",
            ),
            ("<alloc::vec::Vec<u8> as shop::Encode>::encode", "shop::Encode::encode"),
            ("<T as shop::Price>::price", "shop::Price::price"),
            ("<(u8, shop::Cart) as shop::Price>::price", "shop::Price::price"),
            ("<[shop::Cart] as shop::Price>::price", "shop::Price::price"),
            (
                "<fn(u8) -> u32 as core::ops::FnOnce<(u8,)>>::call_once",
                "core::ops::FnOnce::call_once",
            ),
            ("<<shop::A as shop::B>::C as shop::D>::f", "shop::A::C::f"),
            (
                "<shop::stock::update::{closure#0} as core::future::future::Future>::poll",
                "shop::stock::update",
            ),
            (
                "<shop::stock::update<u8>::{async_fn_env#0} as core::future::Future>::poll",
                "shop::stock::update",
            ),
            (
                "shop::cart::_::<impl serde::ser::Serialize for shop::cart::Cart<T>>::serialize",
                "shop::cart::Cart::serialize",
            ),
            ("alloc::vec::<impl alloc::vec::Vec<T>>::total", "alloc::vec::Vec::total"),
            ("core::fmt::num::<impl core::fmt::Display for u32>::fmt", "core::fmt::Display::fmt"),
            (
                "core::ptr::drop_in_place::<shop::stock::update::{closure_env#0}>",
                "core::ptr::drop_in_place",
            ),
            ("core::ptr::drop_in_place<shop::Cart>", "core::ptr::drop_in_place"),
            ("<str>::len", "str::len"),
            // Not Rust, or nothing to make a name of.
            ("__libc_start_main", "__libc_start_main"),
            ("{closure#0}", "{closure#0}"),
            ("<", "<"),
            ("", ""),
        ] {
            assert_eq!(plain(raw), expected, "{raw}");
        }
    }

    #[test]
    fn a_task_is_called_by_its_function() {
        let dynamic = "alloc::boxed::Box<dyn core::ops::function::FnOnce()>";
        let boxed =
            "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future<Output = ()>>>";
        for (task, expected) in [
            ("shop::handle::{{closure}}", Some("handle")),
            ("shop::handle<alloc::vec::Vec<u8>>::{{closure}}", Some("handle")),
            ("shop::stock::Shop::run::{{closure}}", Some("Shop::run")),
            ("<shop::stock::Shop<T> as shop::Serve>::call::{{closure}}", Some("Shop::call")),
            ("core::pin::Pin<alloc::boxed::Box<shop::handle::{{closure}}>>", Some("handle")),
            ("tracing::instrument::Instrumented<shop::handle::{{closure}}>", Some("handle")),
            ("shop::serve::{{closure}}::{{closure}}", Some("serve")),
            ("shop::read_file", Some("read_file")),
            ("shop::Shop::open<u8>", Some("Shop::open")),
            ("shop::main::{{closure}}::{{closure}}", None),
            (boxed, None),
            (dynamic, None),
            ("core::future::ready::Ready<i32>", None),
            ("fn() -> u8", None),
            ("fn(shop::Cart) -> u8", None),
            ("", None),
        ] {
            assert_eq!(of_task(task).as_deref(), expected, "{task}");
        }
    }

    #[cfg(feature = "symbols")]
    #[test]
    fn a_bare_name_gets_the_modules_of_its_file() {
        let root = Some(("/home/me/shop-1/src/", "shop"));
        for (last, file, expected) in [
            ("update<u32>", "/home/me/shop-1/src/stock.rs", "shop::stock::update"),
            ("update", "/home/me/shop-1/src/stock/mod.rs", "shop::stock::update"),
            ("main", "/home/me/shop-1/src/main.rs", "shop::main"),
            ("main", "/home/me/shop-1/src/bin/shop.rs", "shop::shop::main"),
            ("price", "/home/me/bank-core/src/lib.rs", "bank_core::price"),
            ("price", "/home/me/x.rs", "price"),
            (
                "poll",
                "/cargo/registry/src/index/tokio-1.47.0/src/time/sleep.rs",
                "tokio::time::sleep::poll",
            ),
            ("get", "/cargo/registry/src/index/http-body-1.0.0-rc.2/src/lib.rs", "http_body::get"),
            ("price", "/home/me/shop-1.2/src/lib.rs", "shop_1.2::price"),
        ] {
            assert_eq!(in_file(last, file, root), expected);
        }
    }
}
