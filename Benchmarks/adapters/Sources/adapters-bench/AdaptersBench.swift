import Foundation
import Larder

/// The parts of the measurements that are Swift: see `adapters.py`.
@main
enum AdaptersBench {
    static let usage = """
        usage: adapters-bench serve STORE PORT
               adapters-bench client STORE PORT SECONDS ROUNDS
               adapters-bench persist STORE SECONDS ROUNDS

        """

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let numbers = arguments.dropFirst(2).compactMap { Int($0) }
        guard arguments.count == numbers.count + 2 else { exitWithUsage() }
        let store = try Store(at: arguments[1], Configuration(budget: Budget(bytes: .megabytes(500))))
        switch (arguments[0], numbers.count) {
        case ("serve", 1): try await serve(store, port: numbers[0])
        case ("client", 3):
            try await measureClients(store, port: numbers[0], seconds: numbers[1], rounds: numbers[2])
        case ("persist", 2): try await measureDrivers(store, seconds: numbers[0], rounds: numbers[1])
        default: exitWithUsage()
        }
        try await store.close()
    }

    private static func exitWithUsage() -> Never {
        FileHandle.standardError.write(Data(usage.utf8))
        exit(64)
    }

    /// How often each of the bodies runs in a second, with 16 tasks; the bodies take turns. Medians of the rounds.
    ///
    /// - Parameter bodies: are given a number that no other call has.
    static func rates(
        seconds: Int, rounds: Int, _ bodies: [@Sendable (Int) async throws -> Void]
    ) async throws -> [Double] {
        var results = [[Double]](repeating: [], count: bodies.count)
        for round in 0..<rounds {
            for (place, body) in bodies.enumerated() {
                let clock = ContinuousClock()
                let start = clock.now
                let count = try await withThrowingTaskGroup(of: Int.self) { group in
                    for task in 0..<16 {
                        group.addTask {
                            var count = 0
                            while clock.now - start < .seconds(seconds) {
                                try await body((round * 16 + task) << 32 + count)
                                count += 1
                            }
                            return count
                        }
                    }
                    return try await group.reduce(0, +)
                }
                results[place].append(Double(count) / ((clock.now - start) / .seconds(1)))
            }
        }
        return results.map { $0.sorted()[rounds / 2] }
    }

    /// A row of the table: what, the two rates, their ratio.
    static func printRow(_ what: String, _ rates: [Double]) {
        print("\(what)\t\(rates[0])\t\(rates[1])")
    }
}
