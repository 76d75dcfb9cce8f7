import ArgumentParser
import CachectlCore

/// `completions SHELL`: the script with which a shell completes commands and options.
struct CompletionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract: "Print the completion script for a shell.",
        discussion: """
            bash: cachectl completions bash > ~/.local/share/bash-completion/completions/cachectl
            zsh:  cachectl completions zsh > "${fpath[1]}/_cachectl"
            fish: cachectl completions fish > ~/.config/fish/completions/cachectl.fish
            """)

    /// A shell with a completion script.
    enum Shell: String, ExpressibleByArgument, CaseIterable {
        case bash, zsh, fish
    }

    @Flag(help: "Print JSON.")
    var json = false

    @Argument(help: "The shell.")
    var shell: Shell

    func run() throws {
        let kind: CompletionShell =
            switch shell {
            case .bash: .bash
            case .zsh: .zsh
            case .fish: .fish
            }
        let script = Cachectl.completionScript(for: kind)
        try Output.write(json ? JSON.text(ScriptJSON(shell: shell.rawValue, script: script)) : script + "\n")
    }
}

/// `completions --json`.
private struct ScriptJSON: Encodable {
    let shell: String
    let script: String
}
