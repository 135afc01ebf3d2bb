// Cron expressions against independent libraries, and time zones against zdump. A small program (answer_cron.c) calls the
// gateway's own code.
//
// croner computes the times of five years. It has its own rules for the hours in which a clock is set; cron-parser follows
// the README's rules, but takes a millisecond per time. So cron-parser checks the days around a clock that is set back,
// and croner the rest. When a clock is set forward, cron-parser's result depends on its start time. There, and around
// every other change, the README's rules are checked minute by minute.
import test from 'node:test'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Cron } from 'croner'
import { CronExpressionParser } from 'cron-parser'

const program = join(dirname(process.env.GATEWAY_RELEASE_BIN), 'answer_cron')

function run(command, args, input = '') {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const parts = []
    child.stdout.on('data', (part) => parts.push(part))
    child.on('error', reject)
    child.on('close', (code) => code === 0 ? resolve(Buffer.concat(parts).toString())
      : reject(new Error(`${command} ended with ${code}`)))
    child.stdin.end(input)
  })
}

const ask = async (questions) =>
  (await run(program, [], questions.map((q) => q + '\n').join(''))).split('\n').slice(0, questions.length)

// Nine tenths of the CPU time would go to formatters: croner reads a time in a zone from toLocaleString, which creates a
// formatter per call, and cron-parser's luxon formats a date for each offset that it needs. One formatter per zone gives
// the same texts. From 2026 to 2030 no clock is set within a quarter of an hour of UTC, so one offset holds throughout
// it.
const formatters = new Map()
const everything = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }
Date.prototype.toLocaleString = function (locale, options) {
  const key = `${locale} ${options?.timeZone} ${options?.timeZoneName}`
  if (!formatters.has(key))
    formatters.set(key, new Intl.DateTimeFormat(locale, { ...everything, ...options }))
  return formatters.get(key).format(this)
}
const { IANAZone } = createRequire(import.meta.resolve('cron-parser'))('luxon')
const quarter = 900000, offsetOf = IANAZone.prototype.offset, offsets = new Map()
IANAZone.prototype.offset = function (instant) {
  const key = `${this.name} ${Math.floor(instant / quarter)}`
  if (!offsets.has(key))
    offsets.set(key, offsetOf.call(this, instant))
  return offsets.get(key)
}

// Every expression is tested in every zone; with tests/run.sh --all, at twice as many dates.
const inFull = Boolean(process.env.TESTS_IN_FULL)
const hour = 3600000, day = 24 * hour
const from = Date.parse('2026-01-01T00:00:00Z'), to = Date.parse('2031-01-01T00:00:00Z')

// The libraries use Node's own time zones, which may be older or newer than the system's. They cannot check a zone in which
// the two differ.
const zones = ['UTC', 'America/New_York', 'Europe/Berlin', 'Europe/London', 'Europe/Dublin',
  'America/Santiago', 'Australia/Sydney', 'America/Havana', 'Asia/Kolkata', 'Asia/Beirut',
  'America/Sao_Paulo', 'Pacific/Auckland']

const expressions = ['* * * * *', '*/15 * * * *', '30 * * * *', '0 */2 * * *',
  '5-50/7 1-5 */3 * *', '*/20 2 * * *', '30 2 * * *', '30 1 * * *', '0 0 * * *', '30 0 * * *',
  '0 9 * * 1-5', '0 9,17 * * *', '0 0 1 * *', '0 0 L * *', '0 12 * * 5L', '0 12 * * 1#2',
  '0 12 13 * 5', '15 3 29 2 *', '0 0 * JAN,JUL SUN', '59 23 31 12 *']

// Returns the hours at which the clock of a zone is set, each with the seconds by which it is set.
async function changesOf(zone) {
  const hours = []
  for (let t = from; t < to; t += hour)
    hours.push(t)
  const offsets = await ask(hours.map((t) => `offset|${zone}|${t / 1000}`))
  return hours.map((at, i) => ({ at, by: offsets[i] - offsets[Math.max(i - 1, 0)] }))
    .filter((change) => change.by)
}

function knowsOffsets(zone, instants, offsets) {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  return instants.every((t, i) => {
    const name = format.formatToParts(t).find((part) => part.type === 'timeZoneName').value
    const [, sign, hours, minutes] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(name)
    return (sign ? Number(`${sign}1`) * (hours * 3600 + minutes * 60) : 0) === Number(offsets[i])
  })
}

// Returns the times after start and before end.
function byCronParser(zone, expression, start, end) {
  const times = []
  const iterator = CronExpressionParser.parse(expression, { tz: zone, currentDate: new Date(start) })
  for (;;) {
    const time = iterator.next().toDate().getTime()
    if (time >= end)
      return times
    if (time / 1000 !== times[times.length - 1]) // the library returns twice the times that it moved
      times.push(time / 1000)
  }
}

function byCroner(zone, expression, start, end) {
  const times = [], job = new Cron(expression.replace('5L', '5#L'), { timezone: zone, paused: true })
  for (let time = new Date(start); ;) {
    time = job.nextRun(time)
    if (!time || time.getTime() >= end)
      return times
    times.push(time.getTime() / 1000)
  }
}

// A part of every eight months, in full of every four, the smaller the more often the expression runs; expressions that run
// only on some days are compared in all five years.
function samples(expression) {
  const share = /^\* |^\*\/15/.test(expression) ? 0.25 : /^\S+ \*|^5-50/.test(expression) ? 2
    : /\* \* \*$/.test(expression) ? 15 : 0
  const found = share ? [] : [[from, to]]
  for (let t = from; share && t < to; t += (inFull ? 120 : 240) * day)
    found.push([t, t + share * day])
  return found
}

const numbers = (line) => line.trim() ? line.trim().split(' ').map(Number) : []

const judged = []
for (const zone of zones)
  test(`20 expressions run in ${zone} when two libraries say, 2026 to 2030`, async () => {
    const instants = []
    for (let t = from; t < to; t += 6 * hour)
      instants.push(t)
    if (!knowsOffsets(zone, instants, await ask(instants.map((t) => `offset|${zone}|${t / 1000}`))))
      return
    judged.push(zone)
    const changes = await changesOf(zone), cases = []
    for (const expression of expressions) {
      for (const window of samples(expression))
        cases.push([expression, window, byCroner])
      const before = /^\S+ \* /.test(expression) ? 4 * hour : 50 * hour
      for (const { at } of changes.filter((change) => change.by < 0).slice(0, inFull ? 2 : 1))
        cases.push([expression, [at - before, at + 5 * hour], byCronParser])
    }
    const answers = await ask(cases.map(([e, w]) => `next|${zone}|${e}|${w[0]}|${w[1]}`))
    assert.equal(answers.length, cases.length)
    let times = 0
    cases.forEach(([expression, [start, end], library], i) => {
      const steady = (s) => library === byCronParser ||
        changes.every(({ at }) => Math.abs(s * 1000 - at) > 5 * hour)
      const want = library(zone, expression, start, end).filter(steady)
      assert.deepEqual(numbers(answers[i]).filter(steady), want, `${expression} in ${zone}`)
      times += want.length
    })
    assert.ok(times > (inFull ? 4000 : 2000))
  })

test('the libraries could judge most zones', () => {
  assert.ok(judged.length >= zones.length - 3, `only ${judged}`)
})

// ---- the README's rules, minute by minute ----

const months = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')
const weekdays = 'SUN MON TUE WED THU FRI SAT SUN'.split(' ')

// One value of a field with numbers, names, ranges and steps.
function fits(field, value, least, most, names = []) {
  const number = (text) => names.includes(text) ? names.indexOf(text) + least : Number(text)
  return field.split(',').some((part) => {
    const [range, step = '1'] = part.split('/')
    const [from, to] = range === '*' ? [least, most] : range.split('-').map(number)
    const end = to ?? (part.includes('/') ? most : from)
    return value >= from && value <= end && (value - from) % Number(step) === 0
  })
}

function dayFits(expression, wall) {
  const [, , days, month, week] = expression.split(' '), date = new Date(wall * 1000)
  const day = date.getUTCDate(), weekday = date.getUTCDay()
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  const byDay = days === 'L' ? day === last : fits(days, day, 1, 31)
  const byWeek = week.split(',').some((part) =>
    part.endsWith('L') ? weekday === Number(part[0]) && day + 7 > last
      : part.includes('#') ? weekday === Number(part[0]) && Math.ceil(day / 7) === Number(part[2])
        : fits(part, weekday, 0, 7, weekdays) || (weekday === 0 && fits(part, 7, 0, 7, weekdays)))
  return fits(month, date.getUTCMonth() + 1, 1, 12, months) &&
    (days === '*' || week === '*' ? byDay && byWeek : byDay || byWeek)
}

// Returns times in seconds; offset(t) is how far the wall clock is ahead of UTC. If the hours are *, the expression counts
// elapsed minutes. Otherwise it runs at the minutes that the wall clock shows, when it shows them for the first time.
function byTheRules(expression, start, end, offset) {
  const [minutes, hours] = expression.split(' '), times = new Set(), shown = new Set()
  const those = (field, most) => [...Array(most + 1).keys()].map((value) => fits(field, value, 0, most))
  const byMinute = those(minutes, 59), byHour = those(hours, 23), byDay = new Map()
  const isDue = (wall) => {
    if (!byMinute[Math.floor(wall / 60) % 60] || !byHour[Math.floor(wall / 3600) % 24]) return false
    const day = Math.floor(wall / 86400)
    if (!byDay.has(day)) byDay.set(day, dayFits(expression, wall))
    return byDay.get(day)
  }
  for (let t = start - 10800; t < end; t += 60) {
    const wall = t + offset(t), jump = wall - (t - 60 + offset(t - 60)) - 60
    if (hours === '*') {
      if (isDue(wall)) times.add(t)
      continue
    }
    for (let skipped = wall - jump; skipped < wall; skipped += 60) // 02:30 runs at 03:30
      if (isDue(skipped)) times.add(t + skipped - (wall - jump))
    if (!shown.has(wall) && isDue(wall)) times.add(t)
    shown.add(wall)
  }
  return [...times].filter((t) => t > start && t < end).sort((a, b) => a - b)
}

const moving = [...zones, 'Australia/Lord_Howe', 'Africa/Casablanca', 'Africa/Cairo', 'America/Nuuk',
  'America/Asuncion', 'Antarctica/Troll', 'Pacific/Chatham', 'Asia/Gaza']

for (const zone of moving.slice(1))
  test(`around changes of the clock in ${zone}, 20 expressions run as the README says`, async () => {
    const half = 1800, around = 32 * 2 // half hours before and after a change
    const changes = (await changesOf(zone)).map(({ at }) => at / 1000).filter((t) => t - 40 * 3600 > from / 1000)
      .slice(0, inFull ? undefined : 4) // of two years
    const steps = changes.flatMap((t) => Array.from({ length: 2 * around }, (_, i) => t + (i - around) * half))
    const answered = await ask(steps.map((t) => `offset|${zone}|${t}`))
    const offsets = new Map(steps.map((t, i) => [t, Number(answered[i])]))
    const offset = (t) => offsets.get(t - t % half)
    const cases = changes.flatMap((t) => expressions.map((e) => [e, t - 26 * 3600, t + 26 * 3600]))
    const answers = await ask(cases.map(([e, a, b]) => `next|${zone}|${e}|${a * 1000}|${b * 1000}`))
    cases.forEach(([e, a, b], i) =>
      assert.deepEqual(numbers(answers[i]), byTheRules(e, a, b, offset), `${e} around ${new Date(a * 1000).toISOString()}`))
  })

// zdump -v prints the seconds before and at each change:
// "Europe/Berlin  Sun Mar 29 00:59:59 2026 UT = … gmtoff=3600"
const monthNames = 'JanFebMarAprMayJunJulAugSepOctNovDec'
function readDump(text) {
  const found = []
  for (const line of text.split('\n')) {
    const m = /^(\S+) +\w+ (\w+) +(\d+) (\d+):(\d+):(\d+) (\d{4}) UTC? = .*gmtoff=(-?\d+)$/
      .exec(line.replace(' UT ', ' UTC '))
    if (m)
      found.push({ zone: m[1], offset: m[8],
        seconds: Date.UTC(+m[7], monthNames.indexOf(m[2]) / 3, +m[3], +m[4], +m[5], +m[6]) / 1000 })
  }
  return found
}

const skipped = new Set(['posix', 'right', 'localtime', 'posixrules', 'leapseconds'])
function zoneNames(folder = '') {
  return readdirSync(join('/usr/share/zoneinfo', folder), { withFileTypes: true }).flatMap((entry) => {
    const name = join(folder, entry.name)
    if (skipped.has(name) || entry.name.includes('.'))
      return []
    return entry.isDirectory() ? zoneNames(name) : [name]
  })
}

// zdump takes half of this test's time; rules without an end hold from 2038 on.
const years = inFull ? [1900, 2060] : [1970, 2040]

test(`every zone of the system has the offsets that zdump shows, ${years.join(' to ')}`, async () => {
  const names = zoneNames(), changes = [], namesByContent = new Map()
  assert.ok(names.length > 400)
  for (const name of names) {
    const bytes = readFileSync(join('/usr/share/zoneinfo', name), 'latin1')
    namesByContent.set(bytes, [...namesByContent.get(bytes) ?? [], name])
  }
  const zonesByContent = [...namesByContent.values()] // zdump reads each file once, whatever names it has
  for (let i = 0; i < zonesByContent.length; i += 50) {
    const dumped = readDump(await run('zdump', ['-v', '-c', years.join(), ...zonesByContent.slice(i, i + 50).map(([name]) => name)]))
    const byName = new Map(zonesByContent.slice(i, i + 50).map((all) => [all[0], all]))
    changes.push(...dumped.flatMap((change) => byName.get(change.zone).map((zone) => ({ ...change, zone }))))
  }
  const answers = await ask(changes.map((c) => `offset|${c.zone}|${c.seconds}`))
  assert.ok(changes.length > (inFull ? 50000 : 20000))
  changes.forEach((c, i) => assert.equal(answers[i], c.offset, `${c.zone} at ${c.seconds}`))
})
