import CLarder
import LMDB
import Testing

@Suite struct FreePagesTests {
    /// The budget is kept by knowing before a commit how much longer it makes the file.
    @Test(arguments: [1, 2, 3])
    func appendedPagesEqualTheGrowthOfTheFile(_ seed: Int) throws {
        try withEnvironment { environment, path in
            let database = try environment.database("numbers", .integer)
            var next: UInt64 = 1
            for round in 0..<60 {
                let transaction = try environment.beginWrite()
                let before = environment.lastPage
                for step in 0..<(1 + (round * 7 + seed) % 9) {
                    try transaction.append(database, next, count: 100 + (step * 2903 + seed * 977) % 20_000) { raw in
                        raw.initializeMemory(as: UInt8.self, repeating: UInt8(step))
                    }
                    next += 1
                }
                if round % 3 == 2 { try transaction.delete(database, next / 2) }
                let appended = try #require(transaction.appendedPages)
                try transaction.commit()
                let growth = environment.lastPage - before
                // The commit itself may add pages for the list of free ones: a few, and never less than announced.
                #expect(growth >= appended)
                #expect(growth <= appended + 4)
                #expect(size(path + "/data.mdb").length >= (environment.lastPage + 1) * environment.pageSize)
            }
        }
    }

    @Test func pagesFreedBelowAReaderAreNotReclaimable() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("numbers", .integer)
            try fill(environment, database, 1...100)
            try environment.read { snapshot in
                try environment.write { transaction in
                    for key in 1...100 as ClosedRange<UInt64> { try transaction.delete(database, key) }
                }
                // Another commit, so that only the reader stands in the way.
                try environment.write { try $0.put(database, 1000, [1]) }
                let held = try reclaimable(environment)
                #expect(held < 100)
                try #expect(snapshot.bytes(database, 100) == filler(8000, 100))
            }
            try environment.write { try $0.put(database, 1001, [1]) }
            try #expect(reclaimable(environment) >= 190)
        }
    }

    @Test func punchingReclaimablePagesGivesBlocksBackAndKeepsEveryByte() throws {
        try withEnvironment { environment, path in
            let database = try environment.database("numbers", .integer)
            try fill(environment, database, 1...200)
            try environment.write { transaction in
                for key in 1...200 as ClosedRange<UInt64> where key % 10 != 0 { try transaction.delete(database, key) }
            }
            try environment.write { try $0.put(database, 1000, filler(8000, 1000)) }
            let before = size(path + "/data.mdb")
            try punch(environment)
            let after = size(path + "/data.mdb")
            #expect(after.length == before.length)
            #expect(after.allocated < before.allocated / 2)
            func check() throws {
                try environment.read { transaction in
                    for key in 1...200 as ClosedRange<UInt64> {
                        try #expect(transaction.bytes(database, key) == (key % 10 == 0 ? filler(8000, Int(key)) : nil))
                    }
                    try #expect(transaction.bytes(database, 1000) == filler(8000, 1000))
                }
            }
            try check()
            // Holes are filled again by what is written next.
            try fill(environment, database, 2000...2100)
            try check()
            try #expect(environment.read { try $0.bytes(database, 2100) } == filler(8000, 2100))
            #expect(size(path + "/data.mdb").length == before.length)
            environment.close()
            var options = Environment.Options()
            options.mapSize = 1 << 30
            let again = try Environment(path: path, options: options)
            defer { again.close() }
            let reopened = try #require(try again.openDatabase("numbers", order: .integer, create: false))
            try #expect(again.read { try $0.bytes(reopened, 200) } == filler(8000, 200))
            try #expect(again.read { try $0.statistics(reopened).entries } == 20 + 1 + 101)
        }
    }

    @Test func runsShorterThanAskedForAreLeftOut() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("numbers", .integer)
            try fill(environment, database, 1...100)
            try environment.write { transaction in
                for key in 1...100 as ClosedRange<UInt64> where key % 2 == 0 { try transaction.delete(database, key) }
            }
            try environment.write { try $0.put(database, 1000, [1]) }
            let writer = try environment.beginWrite()
            defer { writer.abort() }
            try environment.sync()
            let all = try environment.reclaimablePages(holding: writer, minimumRun: 1)
            let long = try environment.reclaimablePages(holding: writer, minimumRun: 4)
            #expect(all.count > long.count)
            #expect(long.allSatisfy { $0.count >= 4 })
            #expect(Set(long).isSubset(of: Set(all)))
            try #expect(environment.freePageCount() >= all.reduce(0) { $0 + $1.count })
        }
    }

    @Test func usedAndFreePagesMakeUpTheFile() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("numbers", .integer)
            try fill(environment, database, 1...100)
            try environment.write { transaction in
                for key in 1...60 as ClosedRange<UInt64> { try transaction.delete(database, key) }
            }
            try environment.write { try $0.put(database, 1000, [1]) }
            let free = try environment.freePageCount()
            let used = try environment.read { try environment.usedPages(in: $0, databases: [database]) }
            // What is left are the pages of the free list itself.
            let rest = environment.lastPage + 1 - used - free
            #expect((0...4).contains(rest))
        }
    }

    private func fill(_ environment: Environment, _ database: Database, _ keys: ClosedRange<UInt64>) throws {
        try environment.write { transaction in
            for key in keys {
                try transaction.append(database, key, count: 8000) { $0.copyBytes(from: filler(8000, Int(key))) }
            }
        }
    }

    private func reclaimable(_ environment: Environment) throws -> Int {
        let writer = try environment.beginWrite()
        defer { writer.abort() }
        try environment.sync()
        return try environment.reclaimablePages(holding: writer, minimumRun: 1).reduce(0) { $0 + $1.count }
    }

    private func punch(_ environment: Environment) throws {
        let writer = try environment.beginWrite()
        defer { writer.abort() }
        try environment.sync()
        let size = environment.pageSize
        for run in try environment.reclaimablePages(holding: writer, minimumRun: 1) {
            let result = clarder_punch_hole(
                environment.dataDescriptor, Int64(run.firstPage * size), Int64(run.count * size))
            #expect(result == 0)
        }
    }
}
