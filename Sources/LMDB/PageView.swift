/// A page of a tree (`MDB_page`), every access within its bytes.
struct PageView {
    let raw: UnsafeRawBufferPointer

    static let headerLength = 16
    static let nodeHeaderLength = 8
    static let branchFlag: UInt16 = 0x01
    static let leafFlag: UInt16 = 0x02
    static let overflowFlag: UInt16 = 0x04

    var number: UInt64 { raw.native(0) }
    var flags: UInt16 { raw.native(10) }
    var lower: Int { Int(raw.native(12, as: UInt16.self)) }
    var upper: Int { Int(raw.native(14, as: UInt16.self)) }
    /// Pages of an overflow page, which has this word instead of `lower` and `upper`.
    var overflowPages: UInt32 { raw.native(12) }
    var isLeaf: Bool { flags == Self.leafFlag }
    var count: Int { (lower - Self.headerLength) / 2 }

    /// What is wrong with the header; nil if nothing is, and the offsets of all nodes can be read.
    func headerFault(expecting page: UInt64) -> String? {
        if number != page { return "it says it is page \(number)" }
        if flags != Self.branchFlag && flags != Self.leafFlag {
            return "its type \(flags) is not that of a tree's page"
        }
        if lower < Self.headerLength || lower & 1 != 0 || lower > upper || upper > raw.count || upper & 1 != 0 {
            return "its free space \(lower)..<\(upper) is not within its \(raw.count) bytes"
        }
        return nil
    }

    /// Node `index` of a page whose header is sound; nil if it is not within the page.
    func node(_ index: Int) -> Node? {
        let offset = Int(raw.native(Self.headerLength + index * 2, as: UInt16.self))
        guard offset >= upper, offset & 1 == 0, offset + Self.nodeHeaderLength <= raw.count else { return nil }
        let keyLength = Int(raw.native(offset + 6, as: UInt16.self))
        let keyEnd = offset + Self.nodeHeaderLength + keyLength
        guard keyEnd <= raw.count else { return nil }
        let key = UnsafeRawBufferPointer(rebasing: raw[(offset + Self.nodeHeaderLength)..<keyEnd])
        let size = UInt64(raw.native(offset, as: UInt32.self))
        let flags: UInt16 = raw.native(offset + 4)
        if !isLeaf {
            return Node(
                offset: offset, key: key, flags: 0, child: size | UInt64(flags) << 32, size: 0,
                value: UnsafeRawBufferPointer(rebasing: raw[keyEnd..<keyEnd]))
        }
        let inPage = flags & Node.bigFlag != 0 ? 8 : Int(size)
        guard keyEnd + inPage <= raw.count else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: raw[keyEnd..<(keyEnd + inPage)])
        let child = flags & Node.bigFlag != 0 ? value.native(0, as: UInt64.self) : 0
        return Node(offset: offset, key: key, flags: flags, child: child, size: size, value: value)
    }

    /// Pages that a value of `size` bytes takes when it does not fit a page of a tree (`OVPAGES`).
    static func overflowPages(_ size: UInt64, pageSize: Int) -> UInt64 {
        (UInt64(headerLength) - 1 + size) / UInt64(pageSize) + 1
    }
}

/// An item of a page (`MDB_node`).
struct Node {
    let offset: Int
    let key: UnsafeRawBufferPointer
    let flags: UInt16
    /// Of a branch: the page below. Of a leaf with a big value: its first overflow page.
    let child: UInt64
    /// Length of a leaf's value.
    let size: UInt64
    /// What lies in the page: the value, or the number of its overflow page.
    let value: UnsafeRawBufferPointer

    /// `F_BIGDATA`: the value lies on overflow pages.
    static let bigFlag: UInt16 = 0x01
    /// `F_SUBDATA`: the value is the root of a named tree.
    static let treeFlag: UInt16 = 0x02

    /// Bytes that it takes in its page: rounded up to an even number.
    var length: Int { (PageView.nodeHeaderLength + key.count + value.count + 1) & ~1 }
}
