
# `cargo andweorc` is completed as `cargo-andweorc`, and all else of cargo as before.
_cargo_andweorc_in_cargo() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
            [-+]*) ;;
            andweorc)
                local COMP_WORDS=(cargo-andweorc "${COMP_WORDS[@]:i+1}") COMP_CWORD=$((COMP_CWORD - i))
                _cargo_andweorc cargo-andweorc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
                return
                ;;
            *) break ;;
        esac
    done
    if [[ -n "$_cargo_andweorc_before" ]]; then
        "$_cargo_andweorc_before" "$@"
    fi
}
if ! complete -p cargo &>/dev/null && declare -F _completion_loader >/dev/null; then
    _completion_loader cargo &>/dev/null
fi
case "$(complete -p cargo 2>/dev/null)" in
    *_cargo_andweorc_in_cargo*) ;;
    *" -F "*) _cargo_andweorc_before="$(complete -p cargo | sed 's/.* -F \([^ ]*\).*/\1/')" ;;
    *) _cargo_andweorc_before= ;;
esac
complete -F _cargo_andweorc_in_cargo -o bashdefault -o default cargo
