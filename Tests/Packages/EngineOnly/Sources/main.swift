import Larder

// A store in the working directory: a body in, the same body out.
let store = try Store(at: "store")
try store.put(Array("hello".utf8), for: "greeting")
guard let entry = try store.get("greeting"), try entry.body.bytes() == Array("hello".utf8) else {
    fatalError("the body that was stored is not there")
}
print("stored and read \(entry.body.length)")
try store.close()
