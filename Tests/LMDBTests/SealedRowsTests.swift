import LMDB
import Testing

/// Seals for tests: each byte exclusive-ored with one of the place, and a sum behind them.
private final class Scrambler: RowCipher {
    let overhead = 8

    func seal(
        _ row: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer
    ) {
        for (number, byte) in row.enumerated() { target[number] = byte ^ mask(number, place) }
        target.storeBytes(of: sum(row, place), toByteOffset: row.count, as: UInt64.self)
    }

    func open(
        _ sealed: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer
    ) -> Bool {
        for number in target.indices { target[number] = sealed[number] ^ mask(number, place) }
        return sealed.loadUnaligned(fromByteOffset: target.count, as: UInt64.self)
            == sum(UnsafeRawBufferPointer(target), place)
    }

    func hide(_ name: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) {
        let (first, second) = (KeyHash.of(name), KeyHash.of(name.reduce(7) { $0 &* 31 &+ UInt64($1) }))
        target.storeBytes(of: first, as: UInt64.self)
        target.storeBytes(of: second, toByteOffset: 8, as: UInt64.self)
    }

    private func mask(_ number: Int, _ place: UnsafeRawBufferPointer) -> UInt8 {
        0xA5 ^ UInt8(truncatingIfNeeded: number) ^ place[number % place.count]
    }

    private func sum(_ row: UnsafeRawBufferPointer, _ place: UnsafeRawBufferPointer) -> UInt64 {
        KeyHash.of(row) ^ KeyHash.of(place)
    }
}

/// Environments whose rows are sealed.
@Suite struct SealedRowsTests {
    private func withSealed(
        _ hidden: HiddenKey, _ order: KeyOrder = .bytes,
        _ body: (Environment, _ sealed: Database, _ raw: Database) throws -> Void
    ) throws {
        try withEnvironment { environment, _ in
            environment.sealRows(with: Scrambler())
            let sealed = try #require(
                try environment.openDatabase(
                    "a", order: order, create: true, number: 1, sealing: RowSealing(hidden: hidden)))
            let raw = try #require(try environment.openDatabase("a", order: order, create: false))
            try body(environment, sealed, raw)
        }
    }

    @Test func rowsComeBackUnderTheirKeys() throws {
        try withSealed(.whole) { environment, sealed, raw in
            let rows = (0..<200).map { (Array("key \($0)".utf8), [UInt8](repeating: UInt8($0), count: $0 * 7)) }
            try environment.write { transaction in
                for (key, value) in rows { try transaction.put(sealed, key, value) }
                try #expect(transaction.reading.bytes(sealed, "key 5") == rows[5].1)
            }
            try environment.read { transaction in
                for (key, value) in rows { try #expect(transaction.get(sealed, key).map { Array($0) } == value) }
                try #expect(transaction.bytes(sealed, "key 200") == nil)
                let all = try transaction.all(sealed)
                #expect(Set(all.map { String(decoding: $0.0, as: UTF8.self) }).count == 200)
                for (key, value) in all { try #expect(transaction.get(sealed, key).map { Array($0) } == value) }
                // In the file neither a key nor a value is to be seen, nor its exact length.
                for (key, value) in try transaction.all(raw) {
                    #expect(key.count == HiddenKey.length && value.count % 32 == 8)
                    #expect(!value.contains([9, 9, 9, 9, 9, 9, 9, 9]))
                }
            }
            try environment.write { transaction in
                for (key, _) in rows[..<100] { try #expect(transaction.delete(sealed, key)) }
                try #expect(!transaction.delete(sealed, Array("none".utf8)))
            }
            try environment.read { try #expect($0.statistics(sealed).entries == 100) }
        }
    }

    @Test func insertFindsWhatIsThere() throws {
        try withSealed(.whole) { environment, sealed, _ in
            try environment.write { transaction in
                let key = Array("k".utf8)
                func insert(_ byte: UInt8) throws -> [UInt8]? {
                    try key.withUnsafeBytes { key in
                        try transaction.insert(sealed, key, count: 3) { $0.copyBytes(from: [byte, byte, byte]) }
                    }.map { Array($0) }
                }
                try #expect(insert(1) == nil)
                try #expect(insert(2) == [1, 1, 1])
            }
        }
    }

    @Test func rowsOfNumbersKeepTheirOrder() throws {
        try withSealed(.none, .integer) { environment, sealed, _ in
            try environment.write { transaction in
                for number in 1...50 as ClosedRange<UInt64> {
                    try transaction.append(sealed, number, count: 5) { $0.copyBytes(from: "row \(number % 10)".utf8) }
                }
                try transaction.replace(sealed, 7, count: 3) { $0.copyBytes(from: "new".utf8) }
            }
            try environment.read { transaction in
                try #expect(transaction.bytes(sealed, 7) == Array("new".utf8))
                try transaction.withCursor(sealed) { cursor in
                    let found = try #require(try cursor.seek(49 as UInt64))
                    #expect(Array(found.value) == Array("row 9".utf8))
                    try #expect(cursor.next()?.value.elementsEqual("row 0".utf8) == true)
                    try #expect(cursor.next() == nil)
                }
            }
        }
    }

    /// What is found with the beginning of a key, up to where the hidden part ends.
    @Test(arguments: [HiddenKey.tag, .subject]) func rowsWithOneNameLieTogether(_ hidden: HiddenKey) throws {
        func prefix(_ name: UInt8) -> [UInt8] {
            hidden == .tag ? Array("tag \(name)".utf8) + [0] : [3] + [UInt8](repeating: name, count: 32)
        }
        try withSealed(hidden) { environment, sealed, raw in
            try environment.write { transaction in
                for name in 1...9 as ClosedRange<UInt8> {
                    for id in 0..<5 as Range<UInt8> {
                        try transaction.put(sealed, prefix(name) + [0, id], [name, id])
                    }
                }
            }
            try environment.read { transaction in
                for name in 1...9 as ClosedRange<UInt8> {
                    try transaction.withCursor(sealed) { cursor in
                        var pair = try cursor.seek(prefix(name))
                        for id in 0..<5 as Range<UInt8> {
                            #expect(pair.map { Array($0.key) } == prefix(name) + [0, id])
                            #expect(pair.map { Array($0.value) } == [name, id])
                            pair = try cursor.next()
                        }
                        try #expect(
                            cursor.seek(prefix(name) + [0, 3]).map { Array($0.key) } == prefix(name) + [0, 3])
                    }
                }
                if hidden == .subject {
                    try transaction.withCursor(sealed) { try #expect($0.seek([3])?.key.first == 3) }
                }
                for (key, _) in try transaction.all(raw) { #expect(key.count < 20 && !key.starts(with: "tag".utf8)) }
            }
        }
    }

    @Test func aPairIsChangedInItsPlace() throws {
        try withSealed(.whole) { environment, sealed, _ in
            let key = Array("k".utf8)
            try environment.write { try $0.put(sealed, key, [1, 2, 3]) }
            try environment.write { transaction in
                let found = try #require(try key.withUnsafeBytes { try transaction.position(sealed, $0) })
                #expect(Array(found.value) == [1, 2, 3])
                try [UInt8]([4, 5, 6]).withUnsafeBytes { try found.replace($0) }
                found.close()
                try #expect(transaction.reading.bytes(sealed, "k") == [4, 5, 6])
            }
            try environment.write { transaction in
                let found = try #require(try key.withUnsafeBytes { try transaction.position(sealed, $0) })
                try found.delete()
                found.close()
            }
            try environment.read { try #expect($0.bytes(sealed, "k") == nil) }
        }
    }

    /// It has an empty value; walks pass it by, or name it so that it can be removed.
    @Test func aRowThatCannotBeOpenedIsDamaged() throws {
        try withSealed(.whole) { environment, sealed, raw in
            try environment.write { transaction in
                try transaction.put(sealed, Array("a".utf8), [1])
                try transaction.put(sealed, Array("b".utf8), [2])
            }
            let rows = try environment.read { try $0.all(raw) }
            // The rows of two keys, exchanged.
            try environment.write { transaction in
                try transaction.put(raw, rows[0].0, rows[1].1)
                try transaction.put(raw, rows[1].0, rows[0].1)
            }
            let found = try environment.read { transaction in
                try #expect(transaction.bytes(sealed, "a") == [])
                try #expect(transaction.all(sealed).isEmpty)
                return try transaction.withCursor(sealed, showsUnreadable: true) { cursor in
                    var keys: [[UInt8]] = []
                    var pair = try cursor.first()
                    while let (key, value) = pair {
                        #expect(value.isEmpty)
                        keys.append(Array(key))
                        pair = try cursor.next()
                    }
                    return keys
                }
            }
            #expect(found == rows.map(\.0))
            try environment.write { transaction in
                for key in found { try #expect(transaction.delete(sealed, key)) }
            }
            try environment.read { try #expect($0.statistics(sealed).entries == 0) }
        }
    }

    /// LMDB's own list of free pages is read through the same cursors.
    @Test func freePagesAreFound() throws {
        try withSealed(.whole) { environment, sealed, _ in
            for number in 0..<50 { try environment.write { try $0.put(sealed, Array("\(number)".utf8), body(4000)) } }
            for number in 0..<50 { try environment.write { _ = try $0.delete(sealed, Array("\(number)".utf8)) } }
            #expect(try environment.freePageCount() > 20)
        }
    }

    private func body(_ count: Int) -> [UInt8] { [UInt8](repeating: 1, count: count) }
}
