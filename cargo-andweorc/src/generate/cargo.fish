
# `cargo andweorc` is completed as `cargo-andweorc`.
complete -c cargo -n "__fish_seen_subcommand_from andweorc" -f -a '(complete -C (commandline -cp | string replace -r "^\s*cargo\s+([+-]\S+\s+)*andweorc" cargo-andweorc))'
