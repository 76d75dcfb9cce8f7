import Foundation
import Larder
import SystemPackage
import TestSupport
import Testing

@testable import CachectlCore
@testable import CachectlDemo
@testable import cachectl

@Suite struct StoreCommandTests {
    /// A store with small and large entries, two of one body.
    private func filled() throws -> Workplace {
        let place = try Workplace()
        var random = RandomBytes(seed: 11)
        let small = random.bytes(1000)
        try place.run("put", "s/1", "--tag", "t", input: small)
        try place.run("put", "s/2", input: small)
        try place.run("put", "l/1", input: random.bytes(280_000))
        try place.run("put", "l/2", "--lifetime", "0s", input: random.bytes(300_000))
        return place
    }

    @Test func statHasItsKeysAndAgreesWithARecount() throws {
        let place = try filled()
        let json = try place.run("stat", "--json").json
        #expect(json["entryCount"] as? Int == 4)
        #expect(json["blobCount"] as? Int == 3)
        #expect(json["logicalBytes"] as? Int == 582_000)
        #expect(json["storedBytes"] as? Int == 581_000)
        #expect(json["budgetBytes"] is NSNull)
        #expect((json["indexBytes"] as? Int ?? 0) > 0)
        #expect(json["allocatedBytes"] as? Int64 == recount(FilePath(place.store)))
        let human = try place.run("stat").text
        #expect(human.contains("entries           4\n") && human.contains("budget            unlimited\n"))
    }

    /// Those who read while another process makes the store find none, or a whole one.
    @Test func aStoreInTheMakingIsNeverDamaged() throws {
        for _ in 0..<8 {
            let place = try Workplace()
            let maker = try CommandRun.start(["put", "k", "--store", place.store, "/dev/null"])
            var isOver = false
            while !isOver {
                isOver = !maker.isRunning
                for command in [["ls"], ["stat"], ["verify"], ["get", "k"], ["gc", "--dry-run"]] {
                    let run = try CommandRun.cachectl(command + ["--store", place.store])
                    // A miss, or no store yet.
                    #expect([0, 1, 66].contains(run.status), "\(command): \(run.status) \(run.errors)")
                    #expect(!run.errors.contains("repair"), "\(command): \(run.errors)")
                }
            }
            #expect(maker.terminationStatus == 0)
        }
    }

    @Test func statCountsWhatEachProcessHasDone() throws {
        let place = try filled()
        let store = try Store(at: FilePath(place.store), .testing())
        #expect(try store.get("s/1") != nil)
        #expect(try store.get("none") == nil)
        #expect(try store.remove("s/2"))
        try store.close()
        // Reads only, and so counts for itself.
        #expect(try place.run("get", "s/1").status == 0)
        let json = try place.run("stat", "--json").json
        let counters = try #require(json["counters"] as? [String: Any])
        #expect(counters["puts"] as? Int == 4)
        #expect(counters["bytesWritten"] as? Int == 582_000)
        #expect(counters["hits"] as? Int == 1)
        #expect(counters["bytesRead"] as? Int == 1000)
        #expect(counters["misses"] as? Int == 1)
        #expect(counters["hitRatio"] as? Double == 0.5)
        #expect(counters["removed"] as? Int == 1)
        #expect((counters["failures"] as? [String: Any])?.isEmpty == true)
        let times = try #require(counters["commitTimes"] as? [String: Any])
        #expect(times["count"] as? Int == counters["commits"] as? Int)
        let human = try place.run("stat").text
        #expect(human.contains("hits              1, 1 misses (50.0 % of the lookups are hits)\n"))
        #expect(human.contains("failures          none\n"))
        // A look at them adds nothing.
        let again = try #require(try place.run("stat", "--json").json["counters"] as? [String: Any])
        #expect(NSDictionary(dictionary: again) == NSDictionary(dictionary: counters))
    }

    @Test func readingCommandsChangeNothing() throws {
        let place = try filled()
        // The lock file has the table of readers, which readers write to.
        func look() -> [String: Data] { place.contents(of: "store") { !$0.hasSuffix("lock.mdb") } }
        let before = look()
        #expect(before.keys.contains("index/data.mdb"))
        for command in [
            ["stat"], ["stat", "s/1"], ["ls"], ["ls", "--sort", "use"], ["get", "l/1"], ["verify"], ["budget"],
            ["gc", "--dry-run"], ["gc", "--dry-run", "--budget", "1MiB"],
            ["export", place.path.appending("out").string],
        ] {
            let run = try CommandRun.cachectl(command + ["--store", place.store])
            #expect(run.status == 0, "\(command): \(run.errors)")
            #expect(look() == before, "\(command) changed the store")
        }
    }

    @Test func listsAreSelectedSortedAndCut() throws {
        let place = try filled()
        func keys(_ arguments: String...) throws -> [String] {
            let run = try CommandRun.cachectl(["ls", "--json", "--store", place.store] + arguments)
            let list = try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]]
            return list?.compactMap { $0["key"] as? String } ?? []
        }
        #expect(try keys() == ["l/1", "l/2", "s/1", "s/2"])
        #expect(try keys("--prefix", "s/") == ["s/1", "s/2"])
        #expect(try keys("--tag", "t") == ["s/1"])
        #expect(try keys("--tag", "t", "--prefix", "l") == [])
        #expect(try keys("--sort", "size").prefix(2) == ["l/2", "l/1"])
        #expect(try keys("--sort", "age") == ["s/1", "s/2", "l/1", "l/2"])
        #expect(try keys("--sort", "use", "--limit", "1") == ["s/1"])
        #expect(try keys("--limit", "2") == ["l/1", "l/2"])
    }

    @Test func budgetsAreKeptAndDisplace() throws {
        let place = try filled()
        #expect(
            try place.run("budget", "--entries", "3", "--largest-entry", "1MB", "--free-disk-floor", "1MB").status == 0)
        let json = try place.run("budget", "--json").json
        #expect(json["entries"] as? Int == 3 && json["largestEntry"] as? Int == 1_000_000)
        #expect(json["bytes"] is NSNull && json["freeDiskFloor"] as? Int == 1_000_000)
        #expect(try place.run("stat", "--json").json["entryCount"] as? Int == 3)
        #expect(try place.run("put", "big", input: [UInt8](repeating: 1, count: 1_000_001)).status == 65)
        #expect(try place.run("budget", "--entries", "unlimited", "--free-disk-floor", "none").status == 0)
        #expect(try place.run("gc", "--budget", "1MiB", "--compact", "--json").status == 0)
        #expect(try place.run("stat", "--json").json["budgetBytes"] as? Int == 1 << 20)
        #expect(recount(FilePath(place.store)) <= 1 << 20)
    }

    @Test func collectionDropsWhatHasExpired() throws {
        let place = try filled()
        let dry = try place.run("gc", "--dry-run", "--json").json
        #expect(dry["expiredEntries"] as? Int == 1 && dry["dryRun"] as? Bool == true)
        let wet = try place.run("gc", "--json").json
        #expect(wet["expiredEntries"] as? Int == 1)
        #expect((wet["freedBytes"] as? Int ?? 0) >= 300_000)
        #expect(try place.run("stat", "--json").json["entryCount"] as? Int == 3)
    }

    @Test func damagedBodiesAreFoundAndMended() throws {
        let place = try filled()
        let blobs = FilePath(place.store).appending("blobs")
        let largest = place.contents(of: "store/blobs").max { $0.value.count < $1.value.count }?.key ?? ""
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: blobs.string + "/" + largest))
        try handle.write(contentsOf: Data("damage".utf8))
        try handle.close()
        let found = try place.run("verify", "--json")
        #expect(found.status == 1 && found.json["isClean"] as? Bool == false)
        #expect(try place.run("get", "l/2", "--expired", "--check").status == 65)
        #expect(try place.run("verify", "--quick").status == 0)
        let repaired = try place.run("verify", "--repair", "--json")
        #expect(repaired.status == 1 && repaired.json["isRepaired"] as? Bool == true)
        #expect(try place.run("verify").status == 0)
        #expect(try place.run("get", "l/2", "--expired").status == 1)
        #expect(try place.run("get", "l/1").status == 0)
    }

    /// The body is in the index: part of its entry, or beside it.
    @Test(arguments: [60, 3000])
    func damagedSmallBodiesAreNotWritten(_ length: Int) throws {
        let place = try Workplace()
        var random = RandomBytes(seed: 12)
        let body = random.bytes(length)
        try place.run("put", "k", input: body)
        #expect(try place.run("get", "k").status == 0)
        let index = URL(fileURLWithPath: FilePath(place.store).appending("index/data.mdb").string)
        var file = try Data(contentsOf: index)
        // Also in pages that an earlier commit has left.
        var copies = 0
        while let found = file.range(of: Data(body)) {
            file[found.lowerBound] ^= 1
            copies += 1
        }
        #expect(copies > 0)
        try file.write(to: index)
        let plain = try place.run("get", "k")
        #expect(plain.status == 65 && plain.output.isEmpty && plain.errors.contains("damaged"))
        #expect(try place.run("get", "k", "--check").status == 65)
        try place.run("put", "sound", input: [1])
        let exported = try place.run("export", place.path.appending("out").string, "--json")
        #expect(exported.status == 1 && exported.json["damaged"] as? Int == 1 && exported.json["files"] as? Int == 1)
        #expect(exported.errors.contains("1 damaged or missing body skipped"))
        #expect(try place.run("verify").status == 1)
    }

    @Test func anIndexThatCannotBeReadIsReplacedOnRepairOnly() throws {
        let place = try filled()
        let index = FilePath(place.store).appending("index/data.mdb").string
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: index))
        try handle.write(contentsOf: Data(repeating: 0x5A, count: 12_288))
        try handle.close()
        #expect(try place.run("stat").status == 65)
        #expect(try place.run("verify").status == 65)
        let repaired = try place.run("verify", "--repair", "--json")
        #expect(repaired.status == 1 && repaired.json["lostFiles"] as? Int == 2)
        #expect(try place.run("put", "new", input: [1]).status == 0)
        #expect(try place.run("verify").status == 0)
    }
}
