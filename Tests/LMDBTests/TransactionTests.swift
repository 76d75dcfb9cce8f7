import LMDB
import Testing

@Suite struct TransactionTests {
    @Test func whatIsPutIsFoundAfterTheCommit() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { transaction in
                try transaction.put(database, Array("key".utf8), [1, 2, 3])
                try #expect(transaction.reading.bytes(database, "key") == [1, 2, 3])
            }
            try #expect(environment.read { try $0.bytes(database, "key") } == [1, 2, 3])
            try #expect(environment.read { try $0.bytes(database, "other") } == nil)
        }
    }

    @Test func putReplacesTheValue() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { try $0.put(database, [1], [1, 2, 3]) }
            try environment.write { try $0.put(database, [1], []) }
            try #expect(environment.read { try $0.get(database, [1]).map { $0.count } } == 0)
        }
    }

    @Test func anEmptyKeyIsRefusedInAPut() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            #expect(throws: LMDBError.self) { try environment.write { try $0.put(database, [], [1]) } }
        }
    }

    @Test func keysUpToTheLimitAreStoredAndLongerOnesRefused() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            let longest = [UInt8](repeating: 7, count: environment.maxKeySize)
            // 511 in LMDB 0.9, more in 1.0: what the index needs.
            #expect(environment.maxKeySize >= 511)
            try environment.write { try $0.put(database, longest, [1]) }
            try #expect(environment.read { try $0.get(database, longest) != nil })
            #expect(throws: LMDBError.self) { try environment.write { try $0.put(database, longest + [7], [1]) } }
        }
    }

    @Test func deleteTellsWhetherThereWasAnything() throws {
        try withEnvironment { environment, _ in
            let bytes = try environment.database("bytes")
            let numbers = try environment.database("numbers", .integer)
            try environment.write { transaction in
                try transaction.put(bytes, [1], [1])
                try transaction.put(numbers, 1, [1])
            }
            try environment.write { transaction in
                try #expect(transaction.delete(bytes, [1]) == true)
                try #expect(transaction.delete(bytes, [1]) == false)
                try #expect(transaction.delete(numbers, 1) == true)
                try #expect(transaction.delete(numbers, 1) == false)
            }
        }
    }

    @Test func aTransactionThatThrowsLeavesNothing() throws {
        struct Stop: Error {}
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            #expect(throws: Stop.self) {
                try environment.write { transaction in
                    try transaction.put(database, [1], [1])
                    throw Stop()
                }
            }
            try #expect(environment.read { try $0.get(database, [1]) == nil })
            // The writer lock is free again.
            try environment.write { try $0.put(database, [2], [2]) }
        }
    }

    @Test func aTransactionThatGoesWithoutCommitIsAborted() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            do {
                let transaction = try environment.beginWrite()
                try transaction.put(database, [1], [1])
            }
            try #expect(environment.read { try $0.get(database, [1]) == nil })
            try environment.write { try $0.put(database, [2], [2]) }
        }
    }

    @Test func removeAllEmptiesOneDatabaseOnly() throws {
        try withEnvironment { environment, _ in
            let first = try environment.database("first")
            let second = try environment.database("second")
            try environment.write { transaction in
                for number in 0..<100 {
                    try transaction.put(first, [UInt8(number) + 1], [1])
                    try transaction.put(second, [UInt8(number) + 1], [2])
                }
            }
            try environment.write { try $0.removeAll(first) }
            try #expect(environment.read { try $0.statistics(first).entries } == 0)
            try #expect(environment.read { try $0.statistics(second).entries } == 100)
        }
    }

    @Test func appendBuildsValuesInPlaceAndReplaceChangesThem() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("numbers", .integer)
            try environment.write { transaction in
                for number in 1...50 as ClosedRange<UInt64> {
                    try transaction.append(database, number, count: 6000) {
                        $0.copyBytes(from: filler(6000, Int(number)))
                    }
                }
                try transaction.replace(database, 7, count: 3) { $0.copyBytes(from: [7, 7, 7]) }
            }
            try environment.read { transaction in
                try #expect(transaction.bytes(database, 7) == [7, 7, 7])
                try #expect(transaction.bytes(database, 50) == filler(6000, 50))
                try #expect(transaction.statistics(database).entries == 50)
            }
        }
    }

    @Test func appendRefusesAKeyThatIsNotTheGreatest() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("numbers", .integer)
            try environment.write { try $0.put(database, 10, [1]) }
            #expect(throws: LMDBError.self) {
                try environment.write { try $0.append(database, 9, count: 1) { $0[0] = 1 } }
            }
            try #expect(environment.read { try $0.statistics(database).entries } == 1)
        }
    }

    /// A damaged row may name such a key.
    @Test func aKeyThatNoDatabaseCanHoldIsNotThere() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("d")
            for key in [[], filler(600, 1)] {
                try #expect(environment.read { try $0.get(database, key) == nil })
                try #expect(environment.write { try $0.delete(database, key) } == false)
            }
        }
    }
}
