import LMDB
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct EnvironmentTests {
    @Test func whatWasCommittedIsThereAfterReopening() throws {
        try withEnvironment { environment, path in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], filler(10_000, 1)) }
            environment.close()
            var options = Environment.Options()
            options.mapSize = 1 << 30
            let again = try Environment(path: path, options: options)
            defer { again.close() }
            let reopened = try #require(try again.openDatabase("a", order: .bytes, create: false))
            try #expect(again.read { try $0.get(reopened, [1]).map { Array($0) } } == filler(10_000, 1))
        }
    }

    /// At a TiB each, the 128th would find no address space left; at an eighth of what is left, 10 GiB.
    @Test func hundredsAreOpenAtOnceAndHaveRoom() throws {
        func open(_ count: Int) throws {
            if count == 0 { return }
            try withEnvironment({ $0.mapSize = 1 << 40 }) { environment, _ in
                _ = try environment.database("a")
                if !Sanitizer.isOn { try #expect(environment.mapSize() == 64 << 30) }
                try open(count - 1)
            }
        }
        try open(300)
    }

    @Test func aMissingDatabaseIsNil() throws {
        try withEnvironment { environment, _ in
            try #expect(environment.openDatabase("none", order: .bytes, create: false) == nil)
            _ = try environment.database("none")
            try #expect(environment.openDatabase("none", order: .bytes, create: false) != nil)
        }
    }

    @Test func namedDatabasesAreIndependent() throws {
        try withEnvironment { environment, _ in
            let databases = try (0..<12).map { try environment.database("d\($0)") }
            try environment.write { transaction in
                for (number, database) in databases.enumerated() { try transaction.put(database, [1], [UInt8(number)]) }
            }
            try environment.read { transaction in
                for (number, database) in databases.enumerated() {
                    try #expect(transaction.get(database, [1]).map { Array($0) } == [UInt8(number)])
                }
            }
        }
    }

    @Test func aReadOnlyEnvironmentReadsAndDoesNotWrite() throws {
        try withEnvironment { environment, path in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], [1]) }
            environment.close()
            var options = Environment.Options()
            options.isReadOnly = true
            options.mapSize = 1 << 30
            let reader = try Environment(path: path, options: options)
            defer { reader.close() }
            let reopened = try #require(try reader.openDatabase("a", order: .bytes, create: false))
            try #expect(reader.read { try $0.get(reopened, [1]) != nil })
            #expect(throws: LMDBError.self) { try reader.beginWrite() }
        }
    }

    @Test func aFileThatIsNotAnIndexIsDamage() throws {
        try withEnvironment { environment, path in
            environment.close()
            let file = open(path + "/data.mdb", O_WRONLY | O_TRUNC)
            let junk = filler(65_536, 1)
            #expect(write(file, junk, junk.count) == junk.count)
            close(file)
            let error = try #require(throws: LMDBError.self) { try Environment(path: path) }
            #expect(error.isDamage)
            #expect(error.description.hasPrefix("mdb_env_open: "))
        }
    }

    @Test func aMissingDirectoryIsASystemError() throws {
        let error = try #require(throws: LMDBError.self) { try Environment(path: "/nonexistent/lmdb") }
        #expect(error.code == ENOENT)
        #expect(!error.isDamage)
        #expect(error.description == "mdb_env_open: No such file or directory (2)")
    }

    @Test func aFullMapIsReportedAndPassesWhenLessIsWritten() throws {
        try withEnvironment { options in
            options.mapSize = 1 << 20
        } _: { environment, _ in
            let database = try environment.database("a")
            let error = try #require(throws: LMDBError.self) {
                try environment.write { try $0.put(database, [1], filler(2 << 20, 1)) }
            }
            #expect(error.isMapFull)
            try environment.write { try $0.put(database, [1], filler(1 << 10, 1)) }
            try #expect(environment.read { try $0.get(database, [1]).map(\.count) } == 1 << 10)
        }
    }

    // MARK: Children

    #if os(Linux)
        /// LMDB 0.9.24 opens `data.mdb` twice without O_CLOEXEC.
        @Test func aProgramThatIsStartedHasNoneOfTheFiles() throws {
            try withEnvironment { environment, path in
                try environment.write { _ in }
                let output = try #require(popen("ls -l /proc/self/fd", "r"))
                var text = ""
                var buffer = [CChar](repeating: 0, count: 4096)
                while fgets(&buffer, Int32(buffer.count), output) != nil {
                    let line = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
                    text += String(decoding: line, as: UTF8.self)
                }
                #expect(pclose(output) == 0)
                #expect(text.contains("/proc/"))
                #expect(!text.contains(path))
            }
        }
    #endif

    // MARK: The reader table

    /// Half of the table is for processes that have no row yet.
    @Test func fewRowsAreSharedByManyThreads() throws {
        try withEnvironment({ $0.maxReaders = 20 }) { environment, _ in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], [1]) }
            try environment.read { _ in }
            func hold(_ count: Int, _ body: () throws -> Void) throws {
                if count == 0 { return try body() }
                try environment.readUnpooled { _ in try hold(count - 1, body) }
            }
            try hold(9) {
                try #expect(environment.readerRows() == 10)
                try Threads.run(8) { _ in
                    for _ in 0..<1000 {
                        try environment.read { try #expect($0.get(database, [1])?.count == 1) }
                    }
                }
                try #expect(environment.readerRows() == 10)
            }
            // There is room again: a row for each of those that read at once.
            try environment.read { _ in try environment.read { _ in } }
        }
    }

    @Test func rowsOfThePoolAreGivenBackWhenTheTableIsFull() throws {
        try withEnvironment({ $0.maxReaders = 4 }) { environment, _ in
            try environment.read { _ in }
            func hold(_ count: Int, _ body: () throws -> Void) throws {
                if count == 0 { return try body() }
                try environment.readUnpooled { _ in try hold(count - 1, body) }
            }
            try hold(4) {
                let error = try #require(throws: LMDBError.self) { try environment.readUnpooled { _ in } }
                #expect(error.isReadersFull)
            }
            try environment.read { _ in }
        }
    }

    // MARK: Threads

    @Test func moreReadersThanSlotsAllSeeTheirSnapshots() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], [1]) }
            // Each level holds a slot; 16 are pooled, the rest get transactions of their own.
            func nest(_ depth: Int) throws {
                try environment.read { transaction in
                    if depth > 0 { try nest(depth - 1) }
                    try #expect(transaction.get(database, [1]).map { Array($0) } == [1])
                }
            }
            try nest(40)
        }
    }

    @Test func manyThreadsReadWhileOneWrites() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { transaction in
                for key in 0..<64 as Range<UInt8> { try transaction.put(database, [key + 1], [0, 0]) }
            }
            let readers = Threads(8) { _ in
                for _ in 0..<200 {
                    // All rows change in one transaction, so a snapshot shows one round.
                    let rounds = try environment.read { try $0.all(database).map(\.1) }
                    #expect(rounds.count == 64)
                    #expect(Set(rounds).count == 1)
                }
            }
            for round in 1...100 as ClosedRange<UInt8> {
                try environment.write { transaction in
                    for key in 0..<64 as Range<UInt8> { try transaction.put(database, [key + 1], [round, round]) }
                }
            }
            try readers.join()
        }
    }

    @Test func aSnapshotIsNotChangedByALaterCommit() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], [1]) }
            try environment.read { transaction in
                let identifier = transaction.id
                try environment.write { try $0.put(database, [1], [2]) }
                try #expect(transaction.get(database, [1]).map { Array($0) } == [1])
                #expect(transaction.id == identifier)
                try #expect(environment.oldestReader() == identifier)
            }
            try #expect(environment.read { try $0.get(database, [1]).map { Array($0) } } == [2])
        }
    }

    // MARK: Closing

    @Test func everyCallAfterCloseIsRefused() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            environment.close()
            environment.close()
            for call in [
                { try environment.read { _ in } }, { try environment.readUnpooled { _ in } },
                { _ = try environment.oldestReader() }, { _ = try environment.isSnapshotHeld() },
                { _ = try environment.mapSize() },
                { _ = try environment.beginWrite() }, { try environment.write { try $0.put(database, [1], [1]) } },
            ] as [() throws -> Void] {
                let error = try #require(throws: LMDBError.self) { try call() }
                #expect(error.isClosed)
            }
        }
    }

    @Test func closeWaitsForReadsUnderWayAndRefusesLaterOnes() throws {
        for _ in 0..<20 {
            try withEnvironment { environment, _ in
                let database = try environment.database("a")
                try environment.write { try $0.put(database, [1], filler(4000, 1)) }
                let reads = Counter()
                let readers = Threads(4) { _ in
                    do {
                        while true {
                            let value = try environment.read { try $0.get(database, [1]).map { Array($0) } }
                            #expect(value?.count == 4000)
                            reads.increment()
                        }
                    } catch let error as LMDBError {
                        #expect(error.isClosed)
                    }
                }
                reads.wait(for: 20)
                environment.close()
                try readers.join()
            }
        }
    }
}
