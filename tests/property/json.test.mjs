// The JSON scanner against JSON.parse. A small program (answer_json.c) calls the gateway's own code. It must accept the same
// texts in valid UTF-8 as JSON.parse, and find the same values in them.
import test from 'node:test'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { Random } from '../support/js/random.mjs'

const program = join(dirname(process.env.GATEWAY_RELEASE_BIN), 'answer_json')
const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)

function ask(lines) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] })
    const parts = []
    child.stdout.on('data', (part) => parts.push(part))
    child.on('error', reject)
    child.on('close', (code) => code === 0
      ? resolve(Buffer.concat(parts).toString().split('\n').slice(0, lines.length))
      : reject(new Error(`the scanner ended with ${code}`)))
    child.stdin.end(lines.map((line) => line + '\n').join(''))
  })
}

const hex = (bytes) => Buffer.from(bytes).toString('hex')

// The value that JSON.parse finds in the bytes, as { value }; undefined when they must be refused.
function parsed(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

// Returns true if two values of JSON.parse are equal. Values may be nested deeper than a stack allows.
function isSame(one, other) {
  for (const pairs = [[one, other]]; pairs.length;) {
    const [a, b] = pairs.pop()
    if (typeof a !== 'object' || !a || typeof b !== 'object' || !b) {
      if (!Object.is(a, b))
        return false
      continue
    }
    const names = Object.keys(a)
    if (Array.isArray(a) !== Array.isArray(b) || names.length !== Object.keys(b).length)
      return false
    for (const name of names) {
      if (!Object.hasOwn(b, name))
        return false
      pairs.push([a[name], b[name]])
    }
  }
  return true
}

async function checkAll(texts) {
  const answers = await ask(texts.map(hex))
  let accepted = 0
  texts.forEach((bytes, i) => {
    const expected = parsed(bytes)
    const description = `seed ${seed}, text ${i}: ${Buffer.from(bytes).toString('latin1')}\nanswer: ${answers[i]}`
    if (!expected)
      return assert.equal(answers[i], 'refused', description)
    accepted++
    assert.ok(!['refused', 'torn'].includes(answers[i]), description)
    assert.ok(isSame(JSON.parse(answers[i]), expected.value), description)
  })
  return accepted
}

const random = new Random(seed)
const below = (count) => random.below(count)
const one = (list) => random.pick(list)

const spaces = () => one(['', '', '', ' ', '\n', '\t ', '\r\n'])
const numbers = ['0', '-0', '1', '-1', '0.1', '1e400', '-1E-400', '12345678901234567890', '1.5e+3',
  '2e0', '1E5', '0e1', '00', '01', '+1', '.5', '1.', '1e', '-', 'NaN', 'Infinity', '0x10']
const letters = ['a', 'key', '', ' ', 'é', '€', '😀', '\u2028', '\u007f', '\\n', '\\"', '\\\\', '\\/',
  '\\b', '\\u0000', '\\u0041', '\\u00e9', '\\uD83D\\uDE00', '\\ud83d\\ude00', '\\uD83D', '\\ude00', '\\uDBFF\\ud800', '\uffff', '__proto_', '/']
const broken = ['\\x', '\\u12', '\\u12G4', '\\uD800\\', '\\uD8', '\\uDC00\\u', '\n', '\0', '\\']

function textOfString() {
  let text = ''
  for (let i = below(5); i > 0; i--)
    text += random.chance(0.01) ? one(broken) : one(letters)
  return `"${text}"`
}

const textOfNumber = () => random.chance(0.02) ? one(numbers)
  : one(numbers.slice(0, 12).concat(String((random.next() - 0.5) * 10 ** (below(40) - 20))))

function textOfValue(depth) {
  const kind = below(depth > 0 ? 8 : 5)
  if (kind === 0)
    return one(['true', 'false', 'null'])
  if (kind < 3)
    return textOfString()
  if (kind < 5)
    return textOfNumber()
  const values = Array.from({ length: below(5) }, () => spaces() +
    (kind === 5 ? '' : textOfString() + spaces() + ':' + spaces()) + textOfValue(depth - 1) + spaces())
  return kind === 5 ? `[${values.join(',') || spaces()}]` : `{${values.join(',') || spaces()}}`
}

const randomText = () => Buffer.from(spaces() + textOfValue(below(6)) + spaces())

// A text with a few bytes removed, doubled, or changed.
function damaged(bytes) {
  let out = [...bytes]
  for (let i = 1 + below(3); i > 0; i--) {
    const at = below(out.length + 1), kind = below(4)
    const byte = one([below(256), 0x22, 0x5c, 0x2c, 0x3a, 0x7b, 0x7d, 0x5b, 0x5d, 0x2d, 0x30, 0x65])
    if (kind === 0)
      out.splice(at, 1 + below(4))
    else if (kind === 1)
      out.splice(at, 0, byte)
    else if (kind === 2)
      out[Math.min(at, out.length)] = byte
    else
      out = out.slice(0, at).concat(out.slice(Math.max(0, at - below(8))))
  }
  return Buffer.from(out)
}

test('the scanner finds the same values in 60,000 random texts as JSON.parse', async () => {
  const accepted = await checkAll(Array.from({ length: 60000 }, randomText))
  assert.ok(accepted > 45000, `only ${accepted} of them were JSON`)
})

test('the scanner refuses the same ones of 100,000 damaged texts as JSON.parse', async () => {
  const accepted = await checkAll(Array.from({ length: 100000 }, () => damaged(randomText())))
  assert.ok(accepted > 5000 && accepted < 80000, `${accepted} of them were JSON`)
})

test('the scanner accepts every depth', async () => {
  const nested = (open, inner, close, depth) => Buffer.from(open.repeat(depth) + inner + close.repeat(depth))
  const texts = [1, 2, 31, 32, 33, 63, 64, 65, 199, 200, 201, 255, 256, 257, 767, 768, 769, 1000, 3000]
    .flatMap((depth) => [nested('[', '', ']', depth), nested('{"a":', '1', '}', depth),
      nested('[[{"a":', 'null', '}]]', Math.floor(depth / 3))])
  assert.ok(await checkAll(texts) > 25)
})

test('the scanner accepts exactly the UTF-8 that a fatal TextDecoder accepts', async () => {
  const texts = []
  for (let first = 0x80; first < 0x100; first++)
    for (let second = 0; second < 0x100; second++)
      for (const rest of [[], [0x80], [0xbf, 0x80], [0x80, 0x41]])
        texts.push(Buffer.from([0x22, first, second, ...rest, 0x22]))
  assert.ok(await checkAll(texts) > 1000)
})

test('the scanner considers two texts the same when JSON.parse returns equal values', async () => {
  const pairs = []
  while (pairs.length < 30000) {
    const a = randomText(), b = random.chance(0.5) ? damaged(a) : randomText()
    const values = [a, b].map(parsed)
    if (values.every(Boolean))
      pairs.push([a, b, same(values[0].value, values[1].value) ? 'same' : 'other'])
  }
  const respelled = pairs.map(([a]) => [a, Buffer.from(JSON.stringify(parsed(a).value))])
    .filter(([a, b]) => same(parsed(a).value, parsed(b).value)).map((pair) => [...pair, 'same'])
  const all = pairs.concat(respelled)
  const answers = await ask(all.map(([a, b]) => `${hex(a)} ${hex(b)}`))
  all.forEach(([a, b, expected], i) => assert.equal(answers[i], expected, `seed ${seed}: ${a} and ${b}`))
  assert.ok(all.filter((pair) => pair[2] === 'other').length > 5000)
})

// Deep equality in which 0 and -0 are equal.
function same(a, b) {
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b)
    return a === b
  const keys = Object.keys(a)
  return Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
}
