//! The attributes `#[andweorc::main]` and `#[andweorc::test]`.
//!
//! They are tokio's attributes with another runtime: tokio's take a `crate = "path"` in which they
//! look for `runtime::Builder`, and the facade has such a path, whose runtime takes part in
//! profiling. So every key and every diagnostic is tokio's own; only `crate` is taken out first,
//! since here it names the facade.

mod renamed;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Runs an async `main` on a tokio runtime that andweorc can profile, in the place of
/// `#[tokio::main]`.
///
/// It takes what `#[tokio::main]` takes: `flavor`, `worker_threads`, `start_paused` (with the
/// feature `test-util`), `name`, and `crate = "path"`, the path of the `andweorc` crate. A
/// dependency that was renamed in `Cargo.toml` is found without that.
///
/// With `ANDWEORC_ENABLED=1` experiments run in the background, and the profile and a report on
/// stderr are finished when the run is settled, when its time is up, when `main` returns, or on
/// Ctrl-C or SIGTERM. Otherwise the program runs as ever.
///
/// ```ignore
/// #[andweorc::main(flavor = "multi_thread", worker_threads = 2)]
/// async fn main() {}
/// ```
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    expand("main", args, item)
}

/// Runs an async test on a tokio runtime that andweorc can profile, in the place of
/// `#[tokio::test]`. It takes what that takes; see [`main`](macro@main).
///
/// ```ignore
/// #[andweorc::test(start_paused = true)]
/// async fn waits() {}
/// ```
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand("test", args, item)
}

/// `#[<facade>::__private::tokio::<attribute>(crate = "<facade>::__private::rt", <args>)] <item>`
fn expand(attribute: &str, args: TokenStream, item: TokenStream) -> TokenStream {
    let (facade, rest) = match split_off_crate(args) {
        Ok(split) => split,
        // With the item as it would be without arguments, so that nothing else is wrong with it.
        Err(error) => {
            let mut output = error.into_compile_error();
            output.extend(expand(attribute, TokenStream::new(), item));
            return output;
        }
    };
    let path = format!("{facade}::__private::tokio::{attribute}");
    let mut inner: TokenStream = path.parse().expect("the facade's path is one");
    let mut keys = TokenStream::from_iter([
        TokenTree::from(Ident::new("crate", Span::call_site())),
        Punct::new('=', Spacing::Alone).into(),
        Literal::string(&format!("{facade}::__private::rt")).into(),
        Punct::new(',', Spacing::Alone).into(),
    ]);
    keys.extend(rest);
    inner.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, keys))]);
    let mut output = TokenStream::from_iter([
        TokenTree::from(Punct::new('#', Spacing::Alone)),
        Group::new(Delimiter::Bracket, inner).into(),
    ]);
    output.extend(item);
    output
}

/// The path of the facade, from `crate = "path"` or the default, and the other arguments.
fn split_off_crate(args: TokenStream) -> Result<(String, TokenStream), Error> {
    let mut facade = None;
    let mut rest = TokenStream::new();
    let mut tokens = args.into_iter().peekable();
    // Keys stand at the begin and after commas; values are never split.
    let mut at_key = true;
    while let Some(token) = tokens.next() {
        let is_crate =
            at_key && matches!(&token, TokenTree::Ident(key) if key.to_string() == "crate");
        at_key = matches!(&token, TokenTree::Punct(comma) if comma.as_char() == ',');
        if !is_crate {
            rest.extend([token]);
            continue;
        }
        let value = match (tokens.next(), tokens.next()) {
            (Some(TokenTree::Punct(equals)), Some(value)) if equals.as_char() == '=' => value,
            _ => {
                return Err(Error::new(
                    token.span(),
                    "the `crate` attribute requires an argument: `crate = \"path::of::andweorc\"`",
                ));
            }
        };
        if facade.is_some() {
            return Err(Error::new(token.span(), "`crate` is set more than once"));
        }
        facade = Some(path_in(&value)?);
        if tokens
            .next_if(|next| matches!(next, TokenTree::Punct(comma) if comma.as_char() == ','))
            .is_some()
        {
            at_key = true;
        }
    }
    Ok((facade.unwrap_or_else(renamed::facade), rest))
}

/// The path in a string literal.
fn path_in(value: &TokenTree) -> Result<String, Error> {
    let text = value.to_string();
    let path = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match path {
        Some(path) if is_path(path) => Ok(path.to_owned()),
        Some(path) => {
            let message = format!("the value of `crate` is not a path: \"{path}\"");
            Err(Error::new(value.span(), &message))
        }
        None => Err(Error::new(
            value.span(),
            &format!(
                "the value of `crate` must be a path in a string, such as \"andweorc\", and not `{text}`"
            ),
        )),
    }
}

/// Whether `text` is identifiers joined by `::`, with or without one before the first.
fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric())
    };
    text.strip_prefix("::").unwrap_or(text).split("::").all(is_name)
        && text.parse::<TokenStream>().is_ok()
}

/// A mistake in the attribute.
struct Error {
    at: Span,
    message: String,
}

impl Error {
    fn new(at: Span, message: &str) -> Error {
        Error { at, message: message.to_owned() }
    }

    /// `::core::compile_error!{"message"}` where the mistake is.
    fn into_compile_error(self) -> TokenStream {
        let here = |mut token: TokenTree| {
            token.set_span(self.at);
            token
        };
        let message = TokenStream::from(here(Literal::string(&self.message).into()));
        [
            TokenTree::from(Punct::new(':', Spacing::Joint)),
            Punct::new(':', Spacing::Alone).into(),
            Ident::new("core", Span::call_site()).into(),
            Punct::new(':', Spacing::Joint).into(),
            Punct::new(':', Spacing::Alone).into(),
            Ident::new("compile_error", Span::call_site()).into(),
            Punct::new('!', Spacing::Alone).into(),
            Group::new(Delimiter::Brace, message).into(),
        ]
        .map(here)
        .into_iter()
        .collect()
    }
}
