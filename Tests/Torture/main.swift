// Puts a store under load, kills processes in the middle of it, and checks the promises of docs/recovery.md.
//
//     torture kills|processes|power-loss|filesystems|resources [--minutes N] [--cycles N] [--seed N] [--processes N]
//     [--lanes N]
//             [--store DIR] [--keep] [--ignore-syncs] [--blocks] [--fs NAME,...]
//     torture worker STORE MODE SEED SLOT OPERATIONS        (started by the others)
//
// Exit code: 0 if nothing was violated, 1 if something was, 64 for wrong arguments.

import Foundation

var arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "worker" {
    exit(WorkerMain.run(Array(arguments.dropFirst())))
}
let commands = ["kills", "processes", "power-loss", "filesystems", "resources"]
let command = arguments.first.flatMap { commands.contains($0) ? $0 : nil } ?? "kills"
if arguments.first == command { arguments.removeFirst() }
guard let options = Options(arguments) else {
    print("usage: torture [\(commands.joined(separator: "|"))] \(Options.usage)")
    exit(64)
}
func skip(_ reason: String) -> Never {
    print("\(command): skipped, \(reason)")
    exit(0)
}

do {
    switch command {
    case "processes": exit(try ProcessesRun(options).run() ? 0 : 1)
    #if os(Linux)
        case "power-loss" where options.isBelowFileSystems:
            if let reason = try PrivateMounts.enter() { skip(reason) }
            var run = BlockLossRun(options)
            exit(try run.run() ? 0 : 1)
        case "filesystems":
            if let reason = try PrivateMounts.enter() { skip(reason) }
            var run = FilesystemsRun(options)
            exit(try run.run() ? 0 : 1)
    #else
        case "power-loss" where options.isBelowFileSystems: skip("Linux only")
        case "filesystems": skip("Linux only")
    #endif
    case "power-loss": exit(try PowerLossRun(options).run() ? 0 : 1)
    case "resources": exit(try ResourcesRun(options).run() ? 0 : 1)
    default: exit(try KillsRun(options).run() ? 0 : 1)
    }
} catch {
    print("torture: \(error)")
    exit(1)
}
