/// Which values stay in a bounded memory: CAR, "clock with adaptive replacement" (Bansal and Modha, FAST '04), with
/// costs in bytes in place of a count of pages.
///
/// Values that were asked for once (`recent`) and those that were asked for again (`frequent`) go round on two clocks.
/// A use sets a mark and moves nothing. What goes leaves its key behind for a while. If such a key comes back, the
/// clock that let it go gets a larger share. So a scan of values that no one asks for again passes through `recent` and
/// leaves `frequent` as it is.
struct AdaptiveClock<Key: Hashable, Value> {
    private enum Ring: Int {
        case recent, frequent, recentGone, frequentGone
    }

    private struct Node {
        var key: Key
        /// Nil: gone.
        var value: Value?
        var cost: Int
        var isUsed = false
        var ring: Ring
        var previous = -1
        var next = -1
    }

    /// From `first`, where the hand is, to `last`.
    private struct List {
        var first = -1
        var last = -1
        var cost = 0
        var count = 0
    }

    private var nodes: [Node] = []
    private var free: [Int] = []
    private var positions: [Key: Int] = [:]
    private var lists = [List](repeating: List(), count: 4)
    /// The cost that `recent` is to have.
    private var target = 0
    /// The most that all values may cost.
    private(set) var capacity: Int
    private let countLimit: Int
    /// Values that have gone, for the caller to release: not under its lock, as that may run code of theirs.
    private var gone: [Value] = []

    /// - Parameters:
    ///   - capacity: the most that all values may cost.
    ///   - count: how many there may be.
    init(capacity: Int, count: Int) {
        self.capacity = capacity
        countLimit = count
    }

    /// What all values cost.
    var cost: Int { list(.recent).cost + list(.frequent).cost }
    /// How many there are.
    var count: Int { list(.recent).count + list(.frequent).count }

    /// The values that have gone since the last call.
    mutating func takeGone() -> [Value] {
        defer { gone = [] }
        return gone
    }

    /// The value under a key, which counts as a use.
    mutating func value(for key: Key) -> Value? {
        guard let position = positions[key], let value = nodes[position].value else { return nil }
        nodes[position].isUsed = true
        return value
    }

    /// Takes a value in, in place of one under the key; others make room. One that costs more than a quarter of the
    /// capacity is not taken.
    mutating func insert(_ value: Value, for key: Key, cost: Int) {
        let cost = max(cost, 1)
        guard cost <= capacity / 4 else {
            gone.append(value)
            return remove(key)
        }
        var ring = Ring.recent
        if let position = positions[key] {
            switch nodes[position].ring {
            case .recent: ring = .recent
            case .frequent: ring = .frequent
            case .recentGone:
                target = min(capacity, target + step(cost, .frequentGone, .recentGone))
                ring = .frequent
            case .frequentGone:
                target = max(0, target - step(cost, .recentGone, .frequentGone))
                ring = .frequent
            }
            drop(position)
        }
        while self.cost > capacity - cost || count >= countLimit { letGo() }
        append(Node(key: key, value: value, cost: cost, ring: ring))
        boundKeys()
    }

    /// True if a key was asked for lately: it is here, or has gone not long ago, or was the subject of this question.
    /// If not, it is noted. For values that are worth keeping from the second time on.
    mutating func wasAsked(for key: Key, cost: Int) -> Bool {
        if positions[key] != nil { return true }
        if cost <= capacity / 4 {
            append(Node(key: key, value: nil, cost: max(cost, 1), ring: .recentGone))
            boundKeys()
        }
        return false
    }

    /// Forgets a key.
    mutating func remove(_ key: Key) {
        if let position = positions[key] { drop(position) }
    }

    /// Changes the capacity; values make room, the keys that they leave included.
    mutating func resize(_ capacity: Int) {
        self.capacity = max(0, capacity)
        target = min(target, self.capacity)
        while cost > self.capacity { letGo() }
        boundKeys()
        compact()
    }

    /// Gives back the places of what has gone, where that is most of them.
    private mutating func compact() {
        guard nodes.count > 1024, free.count > nodes.count / 2 else { return }
        var other = AdaptiveClock(capacity: capacity, count: countLimit)
        other.target = target
        other.gone = gone
        for list in lists {
            var position = list.first
            while position >= 0 {
                other.append(nodes[position])
                position = nodes[position].next
            }
        }
        self = other
    }

    /// Forgets everything.
    mutating func removeAll() {
        let values = gone + nodes.compactMap(\.value)
        self = AdaptiveClock(capacity: capacity, count: countLimit)
        gone = values
    }

    /// By how much the target moves: the more, the less of what is gone is the clock's own.
    private func step(_ cost: Int, _ other: Ring, _ own: Ring) -> Int {
        let ratio = max(1, list(other).cost / max(1, list(own).cost))
        let (step, isOverflow) = cost.multipliedReportingOverflow(by: ratio)
        return isOverflow ? capacity : min(step, capacity)
    }

    /// One value goes, and leaves its key.
    private mutating func letGo() {
        while true {
            let isRecent = first(.recent) != nil && (list(.recent).cost >= max(1, target) || first(.frequent) == nil)
            guard let position = first(isRecent ? .recent : .frequent) else { return }
            unlink(position)
            if nodes[position].isUsed {
                nodes[position].isUsed = false
                link(position, .frequent)
            } else {
                release(position)
                link(position, isRecent ? .recentGone : .frequentGone)
                return
            }
        }
    }

    /// The keys of values that are gone stand for as much as the capacity at most, and for one clock no more than it
    /// lacks, or an eighth. They are no more than the values, or a few.
    private mutating func boundKeys() {
        while let first = first(.recentGone),
            list(.recent).cost + list(.recentGone).cost > capacity && list(.recentGone).cost > capacity / 8
                || list(.recentGone).count > max(count / 2, Self.leastKeys)
        {
            drop(first)
        }
        while let first = first(.frequentGone),
            lists.reduce(0, { $0 + $1.cost }) > 2 * capacity
                || list(.frequentGone).count > max(count / 2, Self.leastKeys)
        {
            drop(first)
        }
    }

    private static var leastKeys: Int { 128 }

    private func list(_ ring: Ring) -> List { lists[ring.rawValue] }

    private func first(_ ring: Ring) -> Int? { list(ring).first >= 0 ? list(ring).first : nil }

    // MARK: Lists

    private mutating func append(_ node: Node) {
        let position: Int
        if let reused = free.popLast() {
            nodes[reused] = node
            position = reused
        } else {
            position = nodes.count
            nodes.append(node)
        }
        positions[node.key] = position
        link(position, node.ring)
    }

    private mutating func drop(_ position: Int) {
        unlink(position)
        positions[nodes[position].key] = nil
        release(position)
        free.append(position)
    }

    private mutating func release(_ position: Int) {
        guard let value = nodes[position].value else { return }
        gone.append(value)
        nodes[position].value = nil
    }

    private mutating func link(_ position: Int, _ ring: Ring) {
        nodes[position].ring = ring
        nodes[position].previous = lists[ring.rawValue].last
        nodes[position].next = -1
        if lists[ring.rawValue].last >= 0 {
            nodes[lists[ring.rawValue].last].next = position
        } else {
            lists[ring.rawValue].first = position
        }
        lists[ring.rawValue].last = position
        lists[ring.rawValue].cost += nodes[position].cost
        lists[ring.rawValue].count += 1
    }

    private mutating func unlink(_ position: Int) {
        let node = nodes[position]
        if node.previous >= 0 {
            nodes[node.previous].next = node.next
        } else {
            lists[node.ring.rawValue].first = node.next
        }
        if node.next >= 0 {
            nodes[node.next].previous = node.previous
        } else {
            lists[node.ring.rawValue].last = node.previous
        }
        lists[node.ring.rawValue].cost -= node.cost
        lists[node.ring.rawValue].count -= 1
    }
}
