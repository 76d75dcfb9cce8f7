import Foundation
import LMDB
import TestSupport
import Testing

/// The walk over pages that LMDB is not asked about: it accepts what LMDB writes, and says what is wrong with anything
/// else.
@Suite struct PageWalkTests {
    /// Trees of every shape: several levels, integer keys, big values, an empty one, and a free list.
    private func fill(_ environment: Environment, rounds: Int = 6) throws {
        let bytes = try environment.database("bytes")
        let numbers = try environment.database("numbers", .integer)
        _ = try environment.database("empty")
        for round in 0..<rounds {
            try environment.write { transaction in
                for number in 0..<300 {
                    let key = Array("key \(number * 7919 % 1000)".utf8)
                    try transaction.put(bytes, key, filler(number % 50 == 0 ? 9000 : 40 + number % 90, round))
                    try transaction.put(numbers, UInt64(number * 7919 % 1000), filler(number % 3000, round))
                    if number % 3 == 0 { try transaction.delete(numbers, UInt64(number * 31 % 1000)) }
                }
            }
        }
    }

    private func dataFile(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "/data.mdb")))
    }

    private func walk(_ file: [UInt8], isTolerant: Bool = true) throws -> PageWalk<MemoryPages>? {
        let pages = MemoryPages(file)
        guard let meta = try MetaPage.all(pages).first else { return nil }
        var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: isTolerant)
        try walk.run { _, _, _ in }
        return walk
    }

    @Test func whatLMDBWritesIsSound() throws {
        try withEnvironment { environment, path in
            for rounds in [0, 1, 5] {
                try fill(environment, rounds: rounds)
                let orders = try environment.checkPages(.heads)
                #expect(orders == ["bytes": .bytes, "numbers": .integer, "empty": .bytes])
                try #expect(environment.damagedPages(.heads) == [])
                let used = try environment.read { transaction in
                    try environment.usedPages(
                        in: transaction,
                        databases: ["bytes", "numbers", "empty"].map { name in
                            try #require(
                                try environment.openDatabase(
                                    name, order: name == "numbers" ? .integer : .bytes, create: false))
                        })
                }
                let walked = try #require(try walk(dataFile(path)))
                // Two meta pages and the tree of the free list are not among those.
                #expect(Int(walked.usedPages) >= used - 2 && Int(walked.usedPages) <= used + 4)
            }
        }
    }

    /// A file of which the disk cannot read one page.
    private struct WornPages: PageSource {
        let pages: MemoryPages
        let page: UInt64
        var length: UInt64 { pages.length }

        func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(LMDBError) -> Int {
            if offset / 4096 == page { throw LMDBError(code: 5, function: "pread") }
            return pages.read(buffer, at: offset)
        }
    }

    @Test func aPageThatCannotBeReadIsDamageToAWalkThatGoesOn() throws {
        try withEnvironment { environment, path in
            try fill(environment)
            let file = try dataFile(path)
            let whole = try #require(try walk(file))
            var damaged = 0
            for page in 2..<UInt64(file.count / 4096) {
                let pages = WornPages(pages: MemoryPages(file), page: page)
                let meta = try #require(try MetaPage.all(pages).first)
                var tolerant = PageWalk(pages, meta, bigValues: .heads, isTolerant: true)
                var rows = 0
                try tolerant.run { _, _, _ in rows += 1 }
                if tolerant.damages.isEmpty { continue }
                damaged += 1
                #expect(tolerant.damages.contains { $0.page == page && $0.what == "it cannot be read" })
                var strict = PageWalk(pages, meta, bigValues: .heads)
                #expect(throws: LMDBError.self) { try strict.run { _, _, _ in } }
            }
            #expect(damaged > Int(whole.usedPages) / 4)
        }
    }

    @Test func rowsAreThoseThatLMDBSees() throws {
        try withEnvironment { environment, path in
            try fill(environment)
            var rows: [String: [[UInt8]: [UInt8]]] = [:]
            let pages = MemoryPages(try dataFile(path))
            let meta = try #require(try MetaPage.all(pages).first)
            var walk = PageWalk(pages, meta)
            try walk.run { tree, key, value in rows[tree, default: [:]][Array(key)] = Array(value) }
            for (name, order) in [("bytes", KeyOrder.bytes), ("numbers", .integer), ("empty", .bytes)] {
                let database = try #require(try environment.openDatabase(name, order: order, create: false))
                let seen = try environment.read { try $0.all(database) }
                #expect(Dictionary(uniqueKeysWithValues: seen) == rows[name] ?? [:])
            }
        }
    }

    /// Removes most numbers in a transaction that joins pages. A reader that leaves before its commit keeps free pages
    /// from being taken for anything but the list of free pages.
    private func thin(_ environment: Environment, _ generator: inout SeededGenerator) throws {
        let numbers = try environment.database("numbers", .integer)
        try environment.write { transaction in
            for number in 0..<600 { try transaction.put(numbers, UInt64(number), filler(100, 1)) }
        }
        let transaction = try environment.readUnpooled { _ in
            try environment.write { try $0.put(numbers, 1_000, []) }
            let transaction = try environment.beginWrite()
            for number in 0..<600 where Int.random(in: 0..<8, using: &generator) > 0 {
                try transaction.delete(numbers, UInt64(number))
            }
            return transaction
        }
        try transaction.commit()
    }

    /// LMDB lists pages that a transaction took and gave back as free, without ever writing them: they may be the last.
    @Test func aFileWithoutItsLastFreePagesIsSound() throws {
        var generator = SeededGenerator(seed: 1)
        var found = 0
        for _ in 0..<100 where found < 3 {
            try withEnvironment { environment, path in
                try thin(environment, &generator)
                let file = try dataFile(path)
                let meta = try #require(try MetaPage.all(MemoryPages(file)).first)
                guard file.count / meta.pageSize < meta.lastPage + 1 else { return }
                found += 1
                try environment.checkPages(.heads)
                #expect(try walk(file)?.damages == [])
                // Nothing that is in use may be missing.
                var isCut = false
                for count in stride(from: file.count - meta.pageSize, to: 2 * meta.pageSize, by: -meta.pageSize) {
                    let cut = try #require(try walk(Array(file.prefix(count))))
                    // From the first page in use on, every shorter file is damaged.
                    #expect(!isCut || !cut.damages.isEmpty)
                    isCut = isCut || !cut.damages.isEmpty
                }
                #expect(isCut)
            }
        }
        try #require(found > 0, "no file was shorter than its head says: this shows nothing")
    }

    @Test func aWalkGoesOnWhileOthersWrite() throws {
        try withEnvironment { environment, _ in
            try fill(environment)
            let database = try environment.database("bytes")
            try Threads.run(2) { thread in
                for round in 0..<60 {
                    if thread == 0 {
                        try environment.checkPages(.heads)
                    } else {
                        try environment.write { try $0.put(database, Array("key \(round)".utf8), filler(500, round)) }
                    }
                }
            }
        }
    }

    /// Offsets in a page of LMDB 0.9: number 0, type 10, lower 12, upper 14, first node's offset 16. Since 1.0 all but
    /// the first are 8 bytes further on.
    @Test(arguments: [
        (0, 8, "it says it is page"), (10, 1, "its type"), (12, 1, "its free space"), (15, 0x70, "its free space"),
        (17, 0x70, "is not within the page"), (16, 2, "node"),
    ])
    func damagedHeaderIsNamed(_ offset: Int, _ mask: UInt8, _ what: String) throws {
        try withEnvironment { environment, path in
            try fill(environment)
            var file = try dataFile(path)
            let root = try #require(try rootPage(of: "numbers", file))
            let meta = try #require(try MetaPage.all(MemoryPages(file)).first)
            let shift = offset > 0 && meta.format == .version3 ? 8 : 0
            file[root * meta.pageSize + offset + shift] ^= mask
            let damages = try #require(try walk(file)).damages
            #expect(damages.contains { $0.tree == "numbers" && $0.what.contains(what) }, "\(damages)")
            let first = try #require(throws: PageDamage.self) { try walk(file, isTolerant: false) }
            #expect(damages.first == first)
        }
    }

    /// The root of a named tree: at 40 of the 48 bytes that follow its name.
    private func rootPage(of name: String, _ file: [UInt8]) throws -> Int? {
        let meta = try #require(try MetaPage.all(MemoryPages(file)).first)
        let isOld = meta.format == .version1
        let (header, size) = (isOld ? 16 : 24, meta.pageSize)
        func word(_ offset: Int) -> UInt64 {
            file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        }
        let base = word(header + 128) >= word(size + header + 128) ? 0 : size
        let main = word(base + header + 112)
        let page = Array(file[(Int(main) * size)..<(Int(main) * size + size)])
        let text = Array(name.utf8) + (isOld ? [] : [0])
        guard let at = page.indices.first(where: { page[$0...].starts(with: text) }) else { return nil }
        return Int(page.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at + text.count + 40, as: UInt64.self) })
    }

    /// Every byte of every head, and many bytes elsewhere: no trap, and LMDB's own reading agrees where nothing is
    /// found.
    @Test func noDamageTraps() throws {
        try withEnvironment { environment, path in
            try fill(environment)
            let good = try dataFile(path)
            let seed = UInt64.random(in: 0..<1_000_000)
            print("noDamageTraps: seed \(seed)")
            var generator = SeededGenerator(seed: seed)
            var found = 0
            let size = try #require(try MetaPage.all(MemoryPages(good)).first).pageSize
            let pages = good.count / size
            for round in 0..<400 {
                var file = good
                let at =
                    round < min(pages, 200)
                    ? round * pages / min(pages, 200) * size + Int.random(in: 0..<40, using: &generator)
                    : Int.random(in: 0..<good.count, using: &generator)
                file[at] ^= UInt8.random(in: 1...255, using: &generator)
                if round % 5 == 0 { file.removeLast(Int.random(in: 0..<good.count, using: &generator)) }
                if let walked = try walk(file), walked.damages.isEmpty { continue }
                found += 1
            }
            #expect(found > 50)
        }
    }
}
