/// Reads every page of every tree of a data file, and reports those that violate LMDB's assumptions.
///
/// LMDB does not check the pages it reads: a wrong page number, offset or size makes it read or write outside the
/// file's mapping, which ends the process. This walk reads, with bounds checks and without LMDB, everything that a
/// transaction could reach: headers, nodes, the order of keys, depths, counts, the pages of big values and the list of
/// free pages, and checks that no page is used twice. It does not read the values, which have no meaning to LMDB.
///
/// It needs a bit for each page and a page for each level; the time is one pread(2) for each page of a tree.
public struct PageWalk<Source: PageSource> {
    /// The depth of the check of values that do not fit into a page.
    public enum BigValues: Sendable {
        /// Checks that their pages are within the file and have no other use.
        case placed
        /// Also checks the head of the first page, which costs a read for each such value. LMDB relies on it when the
        /// value is deleted.
        case heads
    }

    /// Receives a row of a named tree; the row is valid inside the call.
    public typealias Visitor = (_ tree: String, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws
        -> Void

    let source: Source
    let meta: MetaPage
    let bigValues: BigValues
    /// Continues after damage, leaving out what cannot be read.
    let isTolerant: Bool
    /// The damage found: one at most, or the first thousand if the walk is tolerant.
    public private(set) var damages: [PageDamage] = []
    /// Pages of trees and of big values.
    public private(set) var usedPages: UInt64 = 0
    /// The named trees and the order of their keys.
    public private(set) var trees: [String: KeyOrder] = [:]

    var seen: PageSet
    /// Pages that are listed as free and are not in the file. LMDB does not write a page that a transaction takes and
    /// gives back, so a file may end before its last page.
    var freeBeyond: Set<UInt64> = []
    private let buffers: PageBuffers
    private var visitor: Visitor?
    /// Called before each page of a tree; an error that it throws ends the walk.
    public var pause: (() throws -> Void)?

    static var damageLimit: Int { 1000 }
    /// LMDB's own limit (`CURSOR_STACK`).
    static var depthLimit: Int { 32 }

    /// A walk over the state whose root is `meta`.
    public init(_ source: Source, _ meta: MetaPage, bigValues: BigValues = .placed, isTolerant: Bool = false) {
        self.source = source
        self.meta = meta
        self.bigValues = bigValues
        self.isTolerant = isTolerant
        let pages = source.length / UInt64(meta.pageSize)
        seen = PageSet(count: min(pages, meta.lastPage + 1))
        buffers = PageBuffers(pageSize: meta.pageSize)
    }

    /// Walks. Throws the first `PageDamage` unless tolerant; `LMDBError` if the file cannot be read.
    /// - Parameter visitor: called with every row of every named tree.
    public mutating func run(_ visitor: Visitor? = nil) throws {
        self.visitor = visitor
        defer { self.visitor = nil }
        if meta.lastPage >= 1, seen.count >= 2 { try walkTrees() }
        if meta.lastPage < 1 || seen.count + UInt64(freeBeyond.count) != meta.lastPage + 1 {
            try note(
                meta.page, "file",
                "the file has \(seen.count) pages and \(freeBeyond.count) free ones beyond its end, its head says "
                    + "\(meta.lastPage + 1)")
        }
    }

    var longestKey: Int { meta.format.longestKey(pageSize: meta.pageSize) }

    private mutating func walkTrees() throws {
        seen.insert(0)
        seen.insert(1)
        var named: [(String, TreeRecord)] = []
        var main = Tree(name: "names", record: meta.mainTree, order: .bytes, kind: .names, longestKey: longestKey)
        try walk(&main) { key, value in
            // Since 1.0 the zero that ends the name in C is part of the key.
            let name = key.last == 0 ? UnsafeRawBufferPointer(rebasing: key.dropLast()) : key
            named.append((String(decoding: name, as: UTF8.self), TreeRecord(value)))
        }
        for (name, record) in named {
            trees[name] = record.flags & TreeRecord.integerKeyFlag != 0 ? .integer : .bytes
            var tree = Tree(
                name: name, record: record, order: trees[name] ?? .bytes, kind: .rows, longestKey: longestKey)
            let visitor = visitor
            try walk(&tree) { key, value in try visitor?(name, key, value) }
        }
        // This comes last: it finds pages that are both free and used, and a walk allocates nothing.
        try walkFreeList()
    }

    mutating func note(_ page: UInt64, _ tree: String, _ what: String) throws {
        let damage = PageDamage(page: page, tree: tree, what: what)
        if damages.count < Self.damageLimit { damages.append(damage) }
        if !isTolerant { throw damage }
    }

    /// Reads; nil if the disk cannot read the bytes and the walk continues all the same.
    private func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int? {
        do {
            return try source.read(buffer, at: offset)
        } catch {
            if isTolerant { return nil }
            throw error
        }
    }

    private static var unreadable: String { "it cannot be read" }

    // MARK: One tree

    typealias RowBody = (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Void

    mutating func walk(_ tree: inout Tree, _ body: RowBody) throws {
        let record = tree.record
        let allowed = TreeRecord.integerKeyFlag
        if record.flags & ~allowed != 0 || tree.kind == .names && record.flags != 0
            || tree.kind == .freeList && record.flags != allowed
        {
            try note(meta.page, tree.name, "the tree has flags \(record.flags)")
        }
        if record.root == TreeRecord.noPage {
            if record.depth != 0 || record.entries != 0 {
                try note(meta.page, tree.name, "the tree has no root and \(record.entries) entries")
            }
            return
        }
        guard record.depth >= 1, Int(record.depth) <= Self.depthLimit else {
            return try note(meta.page, tree.name, "the tree has a depth of \(record.depth)")
        }
        try descend(record.root, &tree, level: 0, from: nil, to: nil, body)
        let found = [tree.branchPages, tree.leafPages, tree.overflowPages, tree.entries]
        let recorded = [record.branchPages, record.leafPages, record.overflowPages, record.entries]
        if found != recorded, damages.isEmpty {
            try note(
                meta.page, tree.name,
                "branch pages, leaf pages, overflow pages and entries are \(found), recorded as \(recorded)")
        }
    }

    /// True if the page can be used: it is within the file and was not visited before.
    private mutating func take(_ page: UInt64, _ tree: Tree, from parent: UInt64) throws -> Bool {
        if page < 2 || page >= seen.count {
            try note(parent, tree.name, "it leads to page \(page) of \(seen.count)")
            return false
        }
        if !seen.insert(page) {
            try note(page, tree.name, "it is used twice")
            return false
        }
        usedPages += 1
        return true
    }

    private mutating func descend(
        _ page: UInt64, _ tree: inout Tree, level: Int, from: UnsafeRawBufferPointer?, to: UnsafeRawBufferPointer?,
        _ body: RowBody
    ) throws {
        let parent = tree.current
        try pause?()
        guard try take(page, tree, from: parent) else { return }
        tree.current = page
        defer { tree.current = parent }
        let buffer = buffers.buffer(level)
        guard let count = try read(buffer, at: page * UInt64(meta.pageSize)) else {
            return try note(page, tree.name, Self.unreadable)
        }
        if count < buffer.count { return try note(page, tree.name, "the file ends before it does") }
        let view = PageView(raw: UnsafeRawBufferPointer(buffer), format: meta.format)
        if let fault = view.headerFault(expecting: page) { return try note(page, tree.name, fault) }
        let isAtBottom = level + 1 == Int(tree.record.depth)
        if view.isLeaf != isAtBottom {
            return try note(page, tree.name, "it is on level \(level + 1) of \(tree.record.depth)")
        }
        let least = tree.kind == .freeList ? (view.isLeaf ? 0 : 1) : (view.isLeaf ? 1 : 2)
        if view.count < least { try note(page, tree.name, "it has \(view.count) nodes") }
        if let fault = tilingFault(view) { try note(page, tree.name, fault) }
        if view.isLeaf {
            tree.leafPages += 1
            try visitLeaf(view, page, &tree, from: from, to: to, body)
        } else {
            tree.branchPages += 1
            try visitBranch(view, page, &tree, level: level, from: from, to: to, body)
        }
    }

    /// Nodes fill a page from `upper` to its end without gap or overlap: LMDB moves them together when one is removed.
    private func tilingFault(_ view: PageView) -> String? {
        let ends = buffers.ends
        ends.update(repeating: 0)
        for index in 0..<view.count {
            guard let node = view.node(index) else { return "node \(index) is not within the page" }
            if ends[node.offset / 2] != 0 { return "node \(index) lies where another does" }
            ends[node.offset / 2] = UInt32(node.offset + node.length)
        }
        var at = view.upper
        var count = 0
        while at < view.raw.count {
            let end = Int(ends[at / 2])
            if end <= at { return "no node begins at \(at)" }
            at = end
            count += 1
        }
        return at == view.raw.count && count == view.count ? nil : "its nodes overlap"
    }

    private mutating func visitBranch(
        _ view: PageView, _ page: UInt64, _ tree: inout Tree, level: Int, from: UnsafeRawBufferPointer?,
        to: UnsafeRawBufferPointer?, _ body: RowBody
    ) throws {
        var low = from
        for index in 0..<view.count {
            guard let node = view.node(index) else { continue }
            // The first node represents everything less than the second; LMDB never looks at its key.
            if index > 0 { low = node.key }
            let next = index + 1 < view.count ? view.node(index + 1)?.key : to
            if index > 0, let fault = tree.keyFault(node.key) { try note(page, tree.name, "node \(index): \(fault)") }
            if index > 0, !tree.isInOrder(from, node.key, isStrict: false) || !tree.isInOrder(node.key, next) {
                try note(page, tree.name, "the key of node \(index) is out of order")
            }
            try descend(node.child, &tree, level: level + 1, from: low, to: next, body)
        }
    }

    private mutating func visitLeaf(
        _ view: PageView, _ page: UInt64, _ tree: inout Tree, from: UnsafeRawBufferPointer?,
        to: UnsafeRawBufferPointer?, _ body: RowBody
    ) throws {
        var previous = from
        for index in 0..<view.count {
            guard let node = view.node(index) else { continue }
            if let fault = tree.nodeFault(node) {
                try note(page, tree.name, "node \(index): \(fault)")
                continue
            }
            if !tree.isInOrder(previous, node.key, isStrict: index > 0) || !tree.isInOrder(node.key, to) {
                try note(page, tree.name, "the key of node \(index) is out of order")
            }
            previous = node.key
            tree.entries += 1
            if node.flags & Node.bigFlag == 0 {
                try body(node.key, node.value)
            } else if try takeBigValue(node, page, &tree), visitor != nil || tree.kind == .freeList {
                try readBigValue(node, tree, body)
            }
        }
    }

    // MARK: Big values

    private mutating func takeBigValue(_ node: Node, _ page: UInt64, _ tree: inout Tree) throws -> Bool {
        let pages = meta.format.overflowPages(node.size, pageSize: meta.pageSize)
        if let stated = node.statedPages, stated != pages {
            try note(page, tree.name, "a value of \(node.size) bytes is said to take \(stated) pages, not \(pages)")
            return false
        }
        guard node.child >= 2, node.child < seen.count, pages <= seen.count - node.child else {
            try note(page, tree.name, "a value of \(node.size) bytes on page \(node.child) is not within the file")
            return false
        }
        for number in node.child..<(node.child + pages) where !seen.insert(number) {
            try note(number, tree.name, "it is used twice")
            return false
        }
        usedPages += pages
        tree.overflowPages += pages
        guard bigValues == .heads else { return true }
        var head: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let fault = try withUnsafeMutableBytes(of: &head) { whole -> String? in
            let raw = UnsafeMutableRawBufferPointer(rebasing: whole[..<meta.format.headerLength])
            guard let count = try read(raw, at: node.child * UInt64(meta.pageSize)) else { return Self.unreadable }
            if count < raw.count { return "the file ends before it does" }
            let view = PageView(raw: UnsafeRawBufferPointer(raw), format: meta.format)
            if view.number == node.child, view.flags == PageView.overflowFlag, view.overflowPages == pages {
                return nil
            }
            return "it is not the head of \(pages) pages of a value"
        }
        if let fault { try note(node.child, tree.name, fault) }
        return fault == nil
    }

    private mutating func readBigValue(_ node: Node, _ tree: Tree, _ body: RowBody) throws {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(node.size), alignment: 16)
        defer { space.deallocate() }
        let offset = node.child * UInt64(meta.pageSize) + UInt64(meta.format.headerLength)
        let count = try read(space, at: offset)
        if count == nil { try note(node.child, tree.name, Self.unreadable) }
        if count == space.count { try body(node.key, UnsafeRawBufferPointer(space)) }
    }
}
