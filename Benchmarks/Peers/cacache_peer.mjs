// npm's cacache as a peer: its own timed loop, so that nothing but the cache is measured.
//
//     node cacache_peer.mjs CACACHE_DIRECTORY STORE BODY_BYTES COUNT
//
// Prints {"put": ops/s, "get": ops/s, "version": "..."}. Keys and bodies are made before the clock starts; one operation at
// a time, as with the other peers. cacache checks the digest of what it reads, which Larder by default does not.

import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'

const [module, store, sizeText, countText] = process.argv.slice(2)
const require = createRequire(import.meta.url)
const cacache = require(module)
const { version } = require(`${module}/package.json`)
const size = Number(sizeText)
const count = Number(countText)
const keys = Array.from({ length: count }, (_, i) => `https://www.example.com/item${String(i).padStart(10, '0')}`)
const bodies = keys.map(() => randomBytes(size))
const order = keys.map(() => Math.floor(Math.random() * count))

const seconds = async (work) => {
  const start = process.hrtime.bigint()
  await work()
  return Number(process.hrtime.bigint() - start) / 1e9
}

const putting = await seconds(async () => {
  for (let i = 0; i < count; i++) await cacache.put(store, keys[i], bodies[i])
})
const getting = await seconds(async () => {
  for (const i of order) {
    const { data } = await cacache.get(store, keys[i], { memoize: false })
    if (data.length !== size) throw new Error('a body came back with another length')
  }
})

console.log(JSON.stringify({ put: count / putting, get: order.length / getting, version }))
