extension PageWalk {
    /// The tree being walked, and what was counted in it.
    struct Tree {
        enum Kind {
            case freeList
            case names
            case rows
        }

        let name: String
        let record: TreeRecord
        let order: KeyOrder
        let kind: Kind
        let longestKey: Int
        var current: UInt64 = 0
        var branchPages: UInt64 = 0
        var leafPages: UInt64 = 0
        var overflowPages: UInt64 = 0
        var entries: UInt64 = 0

        init(name: String, record: TreeRecord, order: KeyOrder, kind: Kind, longestKey: Int) {
            self.name = name
            self.record = record
            self.order = order
            self.kind = kind
            self.longestKey = longestKey
        }

        func keyFault(_ key: UnsafeRawBufferPointer) -> String? {
            if order == .integer { return key.count == 8 ? nil : "its key has \(key.count) bytes" }
            return (1...longestKey).contains(key.count) ? nil : "its key has \(key.count) bytes"
        }

        func nodeFault(_ node: Node) -> String? {
            if let fault = keyFault(node.key) { return fault }
            switch kind {
            case .names:
                return node.flags == Node.treeFlag && node.value.count == TreeRecord.length
                    ? nil : "it is not the root of a tree"
            case .freeList, .rows:
                return node.flags & ~Node.bigFlag == 0 ? nil : "its flags are \(node.flags)"
            }
        }

        /// True if the first key comes before the second, or is missing; or is the same, unless `isStrict`.
        func isInOrder(
            _ first: UnsafeRawBufferPointer?, _ second: UnsafeRawBufferPointer?, isStrict: Bool = true
        ) -> Bool {
            guard let first, let second else { return true }
            if order == .integer {
                // Keys of other lengths were reported before.
                guard first.count == 8, second.count == 8 else { return true }
                let (low, high): (UInt64, UInt64) = (first.native(0), second.native(0))
                return isStrict ? low < high : low <= high
            }
            let shared = min(first.count, second.count)
            for index in 0..<shared where first[index] != second[index] { return first[index] < second[index] }
            return isStrict ? first.count < second.count : first.count <= second.count
        }
    }

    /// The list of free pages: transaction -> a count, and the pages in descending order.
    mutating func walkFreeList() throws {
        var tree = Tree(name: "free pages", record: meta.freeTree, order: .integer, kind: .freeList, longestKey: 8)
        let last = meta.transaction
        var lists: [(page: UInt64, fault: String)] = []
        var free: [UInt64] = []
        try walk(&tree) { key, value in
            let transaction: UInt64 = key.native(0)
            if transaction > last {
                lists.append((0, "transaction \(transaction) freed pages after the last, \(last)"))
            }
            guard value.count >= 8, value.native(0, as: UInt64.self) <= UInt64(value.count / 8 - 1) else {
                return lists.append((0, "the list of transaction \(transaction) is longer than its record"))
            }
            let count = Int(value.native(0, as: UInt64.self))
            var previous = UInt64.max
            for index in 0..<count {
                let page: UInt64 = value.native((index + 1) * 8)
                if page >= previous { lists.append((page, "it is out of order in a list")) }
                previous = page
                free.append(page)
            }
        }
        for (page, fault) in lists { try note(page, tree.name, fault) }
        for page in free {
            if page < 2 || page > meta.lastPage {
                try note(page, tree.name, "it is listed, of \(meta.lastPage + 1) pages")
            } else if !(page < seen.count ? seen.insert(page) : freeBeyond.insert(page).inserted) {
                try note(page, tree.name, "it is listed as free and used, or listed twice")
            }
        }
    }
}

/// A set of page numbers, a bit each.
struct PageSet {
    let count: UInt64
    private var words: [UInt64]

    init(count: UInt64) {
        self.count = count
        words = Array(repeating: 0, count: Int(count / 64) + 1)
    }

    /// False if it was there. The page is less than `count`.
    @discardableResult
    mutating func insert(_ page: UInt64) -> Bool {
        let (word, bit) = (Int(page / 64), UInt64(1) << (page % 64))
        if words[word] & bit != 0 { return false }
        words[word] |= bit
        return true
    }
}

/// Space for a page of each level, and for the ends of a page's nodes.
final class PageBuffers {
    // SAFETY: allocated here and freed in `deinit`; the walk that owns it is used by one thread.
    private let pageSize: Int
    private var levels: [UnsafeMutableRawBufferPointer] = []
    let ends: UnsafeMutableBufferPointer<UInt32>

    init(pageSize: Int) {
        self.pageSize = pageSize
        ends = .allocate(capacity: pageSize / 2 + 1)
    }

    deinit {
        for level in levels { level.deallocate() }
        ends.deallocate()
    }

    func buffer(_ level: Int) -> UnsafeMutableRawBufferPointer {
        while levels.count <= level { levels.append(.allocate(byteCount: pageSize, alignment: 16)) }
        return levels[level]
    }
}
