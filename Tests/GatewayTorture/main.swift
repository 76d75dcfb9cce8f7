// Attacks a running gateway as in the reviews, and checks whether it stays within the limits that its operator set.
//
//     gateway-torture CACHECTL [--seconds N] [--scale N] [--memory MiB] [--only TEXT] [--keep]
//
// Starts an origin in this process and CACHECTL serve in front of it; while each attack runs, a good client asks for
// what is stored and what is not. Prints for each attack the highest resident memory and the highest number of
// descriptors of the gateway, and the good client's p99 and errors. Exit code: 0 if memory and the good client held, 1
// if not, 64 for wrong arguments.

import Foundation

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    print("usage: gateway-torture CACHECTL [--seconds N] [--scale PERCENT] [--memory MiB] [--only TEXT] [--keep]")
    exit(64)
}
guard Attack.all.contains(where: { options.only.map($0.name.contains) ?? true }) else {
    print("no attack has '\(options.only ?? "")' in its name; there are:")
    for attack in Attack.all { print("  \(attack.name)") }
    exit(64)
}
do {
    exit(try await Run(options).run() ? 0 : 1)
} catch {
    print("gateway-torture: \(error)")
    exit(1)
}
