import LMDB
import Testing

@Suite struct CursorTests {
    @Test func byteKeysComeInTheOrderOfTheirBytes() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            let keys: [[UInt8]] = [[1], [1, 0], [1, 255], [2], [128], [255]]
            try environment.write { transaction in
                for key in keys.reversed() { try transaction.put(database, key, key) }
            }
            try #expect(environment.read { try $0.all(database).map(\.0) } == keys)
        }
    }

    @Test func integerKeysComeInTheOrderOfTheirValues() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a", .integer)
            let keys: [UInt64] = [0, 1, 255, 256, 65_536, 1 << 40, .max]
            try environment.write { transaction in
                for key in keys.reversed() { try transaction.put(database, key, [1]) }
            }
            let found = try environment.read { transaction in
                try transaction.all(database).map { pair in pair.0.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
                }
            }
            #expect(found == keys)
        }
    }

    @Test(arguments: [
        ([] as [UInt8], "b"), (Array("a".utf8), "b"), (Array("b".utf8), "b"), (Array("ba".utf8), "d"),
        (Array("e".utf8), nil),
    ])
    func seekFindsTheFirstKeyThatIsNotLess(_ start: [UInt8], _ expected: String?) throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.write { transaction in
                for key in ["b", "d"] { try transaction.put(database, Array(key.utf8), []) }
            }
            let found = try environment.read { transaction in
                try transaction.withCursor(database) {
                    try $0.seek(start).map { String(decoding: $0.key, as: UTF8.self) }
                }
            }
            #expect(found == expected)
        }
    }

    @Test func seekWorksOnIntegers() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a", .integer)
            try environment.write { transaction in
                for key in [10, 20, 300] as [UInt64] {
                    try transaction.put(database, key, [UInt8(truncatingIfNeeded: key)])
                }
            }
            try environment.read { transaction in
                try transaction.withCursor(database) { cursor in
                    try #expect(cursor.seek(11).map { Array($0.value) } == [20])
                    try #expect(cursor.next().map { Array($0.value) } == [44])
                    try #expect(cursor.next() == nil)
                    try #expect(cursor.seek(301) == nil)
                    try #expect(cursor.last().map { Array($0.value) } == [44])
                }
            }
        }
    }

    @Test func anEmptyDatabaseHasNoFirstAndNoLast() throws {
        try withEnvironment { environment, _ in
            let database = try environment.database("a")
            try environment.read { transaction in
                try transaction.withCursor(database) { cursor in
                    try #expect(cursor.first() == nil)
                    try #expect(cursor.last() == nil)
                    try #expect(cursor.seek([1] as [UInt8]) == nil)
                }
            }
        }
    }
}
