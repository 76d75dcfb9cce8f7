import Larder

let store = try Store(at: "cache", Configuration(budget: Budget(bytes: .gigabytes(10))))

let digest = try store.put(Array("hello".utf8), for: "https://example.com/", PutOptions(tags: ["greetings"]))
if let entry = try store.get("https://example.com/") {
    print(try entry.body.bytes().count, "bytes,", entry.digest == digest)
}
print(try store.remove(.tag("greetings")), "removed,", try store.statistics().allocatedBytes, "on disk")

try store.close()
