import Logging
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What a second open of a path asks for is honoured or refused, never ignored.
@Suite struct SharingTests {
    /// Setting the budget that a store has changes nothing, so a read-only store allows it.
    @Test func readOnlyStoresShareABudgetThatIsSet() throws {
        let budget = Budget(bytes: .mebibytes(4))
        try withDirectory { path in
            try Store(at: path, .testing { $0.budget = budget }).close()
            let reading = Configuration.testing {
                $0.isReadOnly = true
                $0.budget = budget
            }
            let first = try Store(at: path, reading)
            let second = try Store(at: path, reading)
            try #expect(second.budget().bytes == budget.bytes)
            var other = reading
            other.budget = Budget(bytes: .mebibytes(8))
            let error = try #require(throws: LarderError.self) { try Store(at: path, other) }
            #expect(error.code == .readOnly)
            try second.close()
            try first.close()
        }
    }

    @Test func otherSettingsThatStoresOfAPathShareAreRefusedByName() throws {
        let changes: [(String, (inout Configuration) -> Void)] = [
            ("verification", { $0.verification = .always }), ("clock", { $0.clock = TestClock() }),
            ("expiredRetention", { $0.expiredRetention = .seconds(1) }),
            ("commitDelay", { $0.commitDelay = .seconds(1) }), ("pendingLimit", { $0.pendingLimit = .mebibytes(1) }),
            ("memoryLimit", { $0.memoryLimit = .mebibytes(1) }),
            ("watermarks", { $0.watermarks = .init(high: 0.8, low: 0.5) }),
        ]
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            for (name, change) in changes {
                let error = try #require(throws: LarderError.self) { try Store(at: path, .testing(change)) }
                #expect(error.code == .locked)
                #expect(error.message.contains("`\(name)`"), "\(error)")
            }
            let both = try #require(throws: LarderError.self) {
                try Store(
                    at: path,
                    .testing {
                        $0.memoryLimit = 5
                        $0.pendingLimit = 5
                    })
            }
            #expect(
                both.message
                    == "\(path) is open in this process with another configuration, and stores of one path share `pendingLimit`, "
                    + "`memoryLimit`: open it with the same, use that store, or close it first")
            let same = try Store(at: path, .testing())
            try same.close()
            try finish(first)
        }
    }

    @Test func theSameClockIsShared() throws {
        let clock = TestClock()
        try withDirectory { path in
            let first = try Store(at: path, .testing(clock: clock))
            let second = try Store(at: path, .testing(clock: clock))
            try second.close()
            try finish(first)
        }
    }

    @Test func everyObserverIsTold() throws {
        let told = Mutex<[Int]>([0, 0])
        func configuration(_ number: Int) -> Configuration {
            .testing { configuration in
                configuration.observer = { event in
                    if case .displaced = event { told.withLock { $0[number] += 1 } }
                }
            }
        }
        try withDirectory { path in
            let first = try Store(at: path, configuration(0))
            let second = try Store(at: path, configuration(1))
            try first.setBudget(Budget(entries: 1))
            for number in 0..<3 { try first.put([UInt8(number)], for: Key("k\(number)")) }
            try first.flush()
            #expect(told.withLock { $0 } == [2, 2])
            try first.close()
            try second.put([4], for: "k4")
            try second.flush()
            #expect(told.withLock { $0 } == [2, 3])
            try finish(second)
        }
    }

    @Test func everyLoggerIsWrittenToOnce() throws {
        let lines = Mutex<[String]>([])
        func logger(_ label: String) -> Logger {
            Logger(label: label) { name in Recorder { text in lines.withLock { $0.append("\(name): \(text)") } } }
        }
        try withDirectory { path in
            let stores = try ["a", "b", "b"].map { label in
                try Store(
                    at: path,
                    .testing {
                        $0.logger = logger(label)
                        $0.budget = Budget(bytes: .mebibytes(64))
                    })
            }
            stores[0].engine.logger(.calls).error("failed")
            #expect(lines.withLock { $0.sorted() } == ["a: failed", "b: failed"])
            try stores[0].close()
            stores[1].engine.logger(.calls).error("again")
            #expect(lines.withLock { $0.suffix(1) } == ["b: again"])
            try stores[1].close()
            try finish(stores[2])
        }
    }

    @Test func aCheckOfTheIndexIsMadeForTheOpenThatAsksForIt() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put([1], for: "k")
            try first.flush()
            let data = path.appending("index/data.mdb")
            let good = try TestFiles.read(data)
            for page in 2..<4 {
                for offset in 0..<16 { try TestFiles.flipByte(of: data, at: Int64(page * 4096 + offset)) }
            }
            let isDamaged = try code { try first.engine.context.checkPages(.heads) } != nil
            #expect(isDamaged)
            try #expect(code { try Store(at: path, .testing { $0.indexCheck = .always }) } == .corruption)
            try TestFiles.patch(data, good)
            let second = try Store(at: path, .testing { $0.indexCheck = .always })
            try second.close()
            try finish(first)
        }
    }
}

extension TestFiles {
    /// Writes over a file in place, which a mapping of it shows.
    fileprivate static func patch(_ path: FilePath, _ bytes: [UInt8]) throws {
        let file = try FileDescriptor.open(path, .readWrite)
        _ = try file.closeAfter { try file.writeAll(toAbsoluteOffset: 0, bytes) }
    }
}
