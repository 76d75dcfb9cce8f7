import ArgumentParser
import Foundation
import Larder
import SystemPackage

/// `hits`: hits a second of one thread in a process of its own, in a store of its own. P9 runs two as a control: what
/// two of them reach is what the machine can do.
struct HitsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hits", abstract: "Read hot keys for a while and print the rate.", shouldDisplay: false)

    struct Answer: Codable { var rate: Double }

    @Option var store: String
    @Option var length: Int
    @Option var seed: UInt64
    /// When to begin, nanoseconds of `Ticks`, which all processes of a machine share.
    @Option var start: UInt64
    @Option var seconds: Double

    func run() throws {
        let peer = try LarderPeer(FilePath(store))
        let driver = Driver(peer, Bodies(.fixed(length), seed: seed))
        let order = Order.uniform(20_000, below: 1000, seed: seed)
        _ = try driver.get(order)
        while Ticks.now() < start { usleep(100) }
        let end = Ticks.now() + UInt64(seconds * 1e9)
        let began = Ticks.now()
        var count = 0
        while Ticks.now() < end { count += try driver.get(order).operations }
        let elapsed = Double(Ticks.now() - began) / 1e9
        try peer.close()
        print(try JSONOutput.text(Answer(rate: Double(count) / elapsed)))
    }

    /// Hits a second of several processes at the same time, all together, each in one of these stores.
    static func measure(_ stores: [FilePath], length: Int, seed: UInt64, seconds: Double) throws -> Double {
        let start = Ticks.now() + 500_000_000
        let rates = Rates()
        try Threads.run(stores.count) { number in
            let output = try Subprocess.run(
                Subprocess.ownExecutable,
                [
                    "hits", "--store", stores[number].string, "--length", "\(length)", "--seed", "\(seed)",
                    "--start", "\(start)", "--seconds", "\(seconds)",
                ])
            rates.add(try JSONDecoder().decode(Answer.self, from: output).rate)
        }
        return rates.sum
    }
}
