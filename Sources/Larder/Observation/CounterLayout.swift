/// Where the counters of a store stand in `index/counters`: see `docs/format.md`. In words of 8 bytes.
///
/// The file has areas, and an area has lanes. A process writes to one area, the threads of a process to different
/// lanes, so that no two of them pass a cache line back and forth. A total is the sum over all areas.
enum CounterLayout {
    static let magic: UInt64 = 0x4C61_7264_6572_4331
    static let format: UInt64 = 1
    static let fileLength = 32_768

    static let magicWord = 0
    static let formatWord = 1
    /// When the file was made: store time in microseconds.
    static let sinceWord = 2

    static let headerWords = 128
    static let areaWords = 248
    /// The first is for processes that find no area of their own.
    static let areaCount = 16

    static let laneWords = 8
    static let laneCount = 16

    /// What a lookup changes, in each lane.
    enum Lane: Int {
        /// Hits in the index, and the length of their bodies. While the lane's stripe of the `TouchBuffer` is locked.
        case hits, bytesRead
        /// Hits of what is in memory: not committed yet, or `memoryOnly`; lookups by digest; hits of a store that notes
        /// no accesses.
        case otherHits, otherBytesRead
        case misses
    }

    /// Everything else, once an area, after its lanes.
    enum Scalar: Int, CaseIterable {
        case puts, bytesWritten, removed
        case displacedExpired, displacedLeastRecentlyUsed, evictedExpired, evictedLeastRecentlyUsed
        case commits, failedChanges, damagedBodies
        case commitFailures, publicationFailures, touchFailures, displacementFailures, expiryFailures
        case checkpointFailures, leaseFailures
        /// Of earlier versions, which had a place for failures that they did not count.
        case unused
    }

    static let scalarsAt = laneCount * laneWords

    /// What is measured: a sum of nanoseconds and its buckets for each, after the scalars.
    enum Timing: Int, CaseIterable {
        case lookup, put, commit
    }

    static let timingsAt = scalarsAt + 33
    /// The first ends at 256 ns, each other one at twice the end of the one before; the last has no end.
    static let bucketCount = 28
    private static let firstBucketBits = 8

    /// The first word of an area.
    static func area(_ number: Int) -> Int { headerWords + number * areaWords }

    /// The sum of a timing, in an area; its buckets follow.
    static func timing(_ timing: Timing) -> Int { timingsAt + timing.rawValue * (1 + bucketCount) }

    /// The bucket that a duration belongs to.
    static func bucket(_ nanoseconds: UInt64) -> Int {
        min(max(0, 64 - nanoseconds.leadingZeroBitCount - firstBucketBits), bucketCount - 1)
    }

    /// The first duration that is too long for a bucket, in nanoseconds; nil for the last.
    static func end(ofBucket bucket: Int) -> UInt64? {
        bucket == bucketCount - 1 ? nil : 1 << UInt64(bucket + firstBucketBits)
    }
}
