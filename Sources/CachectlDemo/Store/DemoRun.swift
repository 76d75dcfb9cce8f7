import CachectlCore
import Larder
import Locks

/// Readers that look up files in a skewed order, and writers that store the files that readers missed.
final class DemoRun: Sendable {
    let counters = DemoCounters()

    private let store: Store
    private let corpus: Corpus
    private let order: SkewedOrder
    private let queue = RequestQueue(limit: 64)
    private let isStopped = Atomic<Bool>(false)
    private let failure = FailureBox()
    /// The expected digest of each file, set by the thread that put it.
    private let digests = Mutex<[Int: Digest]>([:])
    /// Files that are unreadable or too large.
    private let unusable = Mutex<Set<Int>>([])

    init(_ store: Store, _ corpus: Corpus) {
        self.store = store
        self.corpus = corpus
        order = SkewedOrder(count: corpus.files.count)
    }

    /// Runs until `isOver` returns true (it is called about ten times a second), or until a thread fails.
    func run(readers: Int, writers: Int, until isOver: () -> Bool) throws {
        var threads: [WorkerThread] = []
        defer {
            isStopped.store(true, ordering: .relaxed)
            queue.close()
            for thread in threads { thread.join() }
        }
        for number in 0..<readers {
            threads.append(try Threads.start { [self] in guarded { try read(RandomBytes(seed: UInt64(number) + 1)) } })
        }
        for _ in 0..<writers { threads.append(try Threads.start { [self] in guarded { try write() } }) }
        while !isOver(), failure.first == nil { usleep(100_000) }
        if let error = failure.first { throw error }
    }

    private func guarded(_ body: () throws -> Void) {
        do { try body() } catch { failure.note(error) }
    }

    private func read(_ random: RandomBytes) throws {
        var random = random
        while !isStopped.load(ordering: .relaxed) {
            let index = order.next(&random)
            if let entry = try store.get(corpus.key(index)) {
                let bytes: [UInt8] = try entry.body.bytes()
                let digest = Digest.of(bytes)
                let expected = digests.withLock { $0[index] } ?? entry.digest
                counters.hit(bytes.count, isRight: digest == entry.digest && digest == expected)
            } else if !unusable.withLock({ $0.contains(index) }) {
                counters.miss()
                queue.ask(for: index)
            }
        }
    }

    private func write() throws {
        while let index = queue.next() {
            try storeFile(index)
            queue.done(index)
        }
    }

    private func storeFile(_ index: Int) throws {
        let key = corpus.key(index)
        // Another writer has stored it since.
        if try store.contains(key) { return }
        guard let bytes = corpus.contents(index) else { return skip(index) }
        digests.withLock { $0[index] = Digest.of(bytes) }
        do {
            try store.put(bytes, for: key)
            counters.stored(bytes.count)
        } catch let error as LarderError where error.code == .tooLarge {
            skip(index)
        }
    }

    private func skip(_ index: Int) {
        if unusable.withLock({ $0.insert(index).inserted }) { counters.skipped() }
    }
}
