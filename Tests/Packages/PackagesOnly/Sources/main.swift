import Larder
import LarderHTTP
import LarderPackages

// A package is exported from one store and installed into another.
let first = try Store(at: "first")
try first.put([1, 2, 3], for: "not a response")
let summary = try await PackageStore(first).export(to: "empty.zip")
guard summary.members == 0 else { fatalError("\(summary)") }
try first.close()

let store = try Store(at: "second")
let result = try await PackageStore(store).install("empty.zip")
guard result.package.name == "empty", try await PackageStore(store).packages().count == 1 else {
    fatalError("\(result)")
}
try store.close()
print("a package that was installed")
