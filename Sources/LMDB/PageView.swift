/// A page of a tree (`MDB_page`), every access within its bytes.
struct PageView {
    let raw: UnsafeRawBufferPointer
    let format: PageFormat

    static let nodeHeaderLength = 8
    static let branchFlag: UInt16 = 0x01
    static let leafFlag: UInt16 = 0x02
    static let overflowFlag: UInt16 = 0x04

    private var headerLength: Int { format.headerLength }

    // The head ends with these in both formats; what comes before them grew.
    var number: UInt64 { raw.native(0) }
    var flags: UInt16 { raw.native(headerLength - 6) }
    var lower: Int { Int(raw.native(headerLength - 4, as: UInt16.self)) + format.base }
    var upper: Int { Int(raw.native(headerLength - 2, as: UInt16.self)) + format.base }
    /// Pages of an overflow page, which has this word instead of `lower` and `upper`.
    var overflowPages: UInt32 { raw.native(headerLength - 4) }
    var isLeaf: Bool { flags == Self.leafFlag }
    var count: Int { (lower - headerLength) / 2 }

    /// What is wrong with the header; nil if nothing is, and the offsets of all nodes can be read.
    func headerFault(expecting page: UInt64) -> String? {
        if number != page { return "it says it is page \(number)" }
        if flags != Self.branchFlag && flags != Self.leafFlag {
            return "its type \(flags) is not that of a tree's page"
        }
        if lower < headerLength || lower & 1 != 0 || lower > upper || upper > raw.count || upper & 1 != 0 {
            return "its free space \(lower)..<\(upper) is not within its \(raw.count) bytes"
        }
        return nil
    }

    /// Node `index` of a page whose header is sound; nil if it is not within the page.
    func node(_ index: Int) -> Node? {
        let offset = Int(raw.native(headerLength + index * 2, as: UInt16.self)) + format.base
        guard offset >= upper, offset & 1 == 0, offset + Self.nodeHeaderLength <= raw.count else { return nil }
        let keyStart = offset + Self.nodeHeaderLength
        let keyEnd = keyStart + Int(raw.native(offset + 6, as: UInt16.self))
        let valueStart = keyStart + format.keySpace(keyEnd - keyStart)
        guard valueStart <= raw.count else { return nil }
        let key = UnsafeRawBufferPointer(rebasing: raw[keyStart..<keyEnd])
        let size = UInt64(raw.native(offset, as: UInt32.self))
        let flags: UInt16 = raw.native(offset + 4)
        let isBig = flags & Node.bigFlag != 0
        let inPage = !isLeaf ? 0 : isBig ? format.referenceLength : Int(size)
        guard valueStart + inPage <= raw.count else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: raw[valueStart..<(valueStart + inPage)])
        let length = (valueStart - offset + inPage + 1) & ~1
        if !isLeaf {
            return Node(
                offset: offset, length: length, key: key, flags: 0, child: size | UInt64(flags) << 32, size: 0,
                value: value)
        }
        let child = isBig ? value.native(0, as: UInt64.self) : 0
        return Node(offset: offset, length: length, key: key, flags: flags, child: child, size: size, value: value)
    }
}

/// An item of a page (`MDB_node`).
struct Node {
    let offset: Int
    /// Bytes that it takes in its page: rounded up to an even number.
    let length: Int
    let key: UnsafeRawBufferPointer
    let flags: UInt16
    /// Of a branch: the page below. Of a leaf with a big value: its first overflow page.
    let child: UInt64
    /// Length of a leaf's value.
    let size: UInt64
    /// The bytes in the page: the value, or the place of its overflow pages.
    let value: UnsafeRawBufferPointer

    /// The number of overflow pages that a node with a big value gives; nil in the format that does not.
    var statedPages: UInt64? { value.count >= 24 ? value.native(16, as: UInt64.self) : nil }

    /// `F_BIGDATA`: the value is on overflow pages.
    static let bigFlag: UInt16 = 0x01
    /// `F_SUBDATA`: the value is the root of a named tree.
    static let treeFlag: UInt16 = 0x02
}
