import ArgumentParser
import CachectlCore

/// Reports two mistakes better than the parser does: options before the command, and commands that do not exist.
enum CommandLineHints {
    /// Throws `usage` if the arguments begin with neither a command nor an option of `cachectl` itself.
    static func check(_ arguments: [String]) throws {
        guard let first = arguments.first else { return }
        if first == "help" {
            if arguments.count > 1, !arguments[1].hasPrefix("-") { try requireCommand(arguments[1]) }
        } else if !first.hasPrefix("-") {
            try requireCommand(first)
        } else if !first.hasPrefix("--generate-completion-script"), !first.hasPrefix("--experimental"),
            let place = arguments.firstIndex(where: { names.contains($0) })
        {
            let corrected = [arguments[place]] + arguments[..<place] + arguments[(place + 1)...]
            throw CommandError(
                .usage, "options follow the command: cachectl \(corrected.map(quoted).joined(separator: " "))")
        }
    }

    private static func requireCommand(_ name: String) throws {
        if names.contains(name) || name == "help" { return }
        let hint = guess(name).map { "did you mean '\($0)'?" } ?? "'cachectl --help' lists the commands"
        throw CommandError(.usage, "there is no command '\(name)': \(hint)")
    }

    /// The commands, in the order of the help.
    static var names: [String] {
        Cachectl.configuration.subcommands.compactMap { command in command.configuration.commandName }
    }

    /// Names of such commands in other programs.
    private static let synonyms = [
        "list": "ls", "dir": "ls", "remove": "rm", "delete": "rm", "del": "rm", "info": "stat", "status": "stat",
        "stats": "stat", "show": "stat", "check": "verify", "fsck": "verify", "repair": "verify", "collect": "gc",
        "clean": "gc", "prune": "gc", "store": "put", "add": "put", "set": "put", "read": "get", "cat": "get",
        "proxy": "serve", "server": "serve", "gateway": "serve", "curl": "fetch", "limit": "budget",
        "completion": "completions",
    ]

    /// The command that the user probably meant.
    static func guess(_ name: String) -> String? {
        let name = name.lowercased()
        if let synonym = synonyms[name] { return synonym }
        let candidates = names.map { (name: $0, distance: distance(Array(name.utf8.prefix(64)), Array($0.utf8))) }
        guard let best = candidates.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= min(2, best.name.count - 1) ? best.name : nil
    }

    /// The Levenshtein distance: how many bytes to insert, remove or replace.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (column, other) in right.enumerated() {
                let above = row[column + 1]
                row[column + 1] = min(above + 1, row[column] + 1, diagonal + (letter == other ? 0 : 1))
                diagonal = above
            }
        }
        return row[right.count]
    }

    /// The word, quoted where a shell needs it.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || "-._/:=,@%+".utf8.contains(byte)
        }
        return isPlain && !word.isEmpty
            ? word : "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
