// Decodes MessagePack. Times (extension -1) become the ISO strings that JSON would have.

const sized = {
  0xc4: "bin1", 0xc5: "bin2", 0xc6: "bin4", 0xd9: "str1", 0xda: "str2", 0xdb: "str4",
  0xdc: "arr2", 0xdd: "arr4", 0xde: "map2", 0xdf: "map4", 0xc7: "ext1", 0xc8: "ext2", 0xc9: "ext4",
};

class Decoder {
  constructor(buffer) { this.buffer = buffer; this.at = 0; }

  take(size) {
    if (this.at + size > this.buffer.length) throw new Error("msgpack: the message ends too early");
    this.at += size;
    return this.buffer.subarray(this.at - size, this.at);
  }

  uint(size) { return this.take(size).readUIntBE(0, size); }

  big(signed) {
    const bytes = this.take(8);
    const value = signed ? bytes.readBigInt64BE() : bytes.readBigUInt64BE();
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  value() {
    const tag = this.uint(1);
    if (tag < 0x80) return tag;
    if (tag >= 0xe0) return tag - 256;
    if (tag < 0x90) return this.map(tag & 15);
    if (tag < 0xa0) return this.array(tag & 15);
    if (tag < 0xc0) return this.take(tag & 31).toString();
    if (tag >= 0xd4 && tag <= 0xd8) return this.extension(1 << (tag - 0xd4));
    if (sized[tag]) return this.container(sized[tag]);
    switch (tag) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xca: return this.take(4).readFloatBE();
      case 0xcb: return this.take(8).readDoubleBE();
      case 0xcc: return this.uint(1);
      case 0xcd: return this.uint(2);
      case 0xce: return this.uint(4);
      case 0xcf: return this.big(false);
      case 0xd0: return this.take(1).readInt8();
      case 0xd1: return this.take(2).readInt16BE();
      case 0xd2: return this.take(4).readInt32BE();
      case 0xd3: return this.big(true);
      default: throw new Error(`msgpack: unknown tag ${tag}`);
    }
  }

  container(kind) {
    const size = this.uint(Number(kind[3]));
    switch (kind.slice(0, 3)) {
      case "bin": return Buffer.from(this.take(size));
      case "str": return this.take(size).toString();
      case "arr": return this.array(size);
      case "map": return this.map(size);
      default: return this.extension(size);
    }
  }

  array(count) { return Array.from({ length: count }, () => this.value()); }
  map(count) { return Object.fromEntries(Array.from({ length: count }, () => [this.value(), this.value()])); }

  extension(size) {
    const type = this.take(1).readInt8(), bytes = this.take(size);
    if (type !== -1) throw new Error(`msgpack: unknown extension ${type}`);
    let seconds, nanoseconds = 0;
    if (size === 4) seconds = bytes.readUInt32BE();
    else if (size === 8) {
      const both = bytes.readBigUInt64BE();
      nanoseconds = Number(both >> 34n);
      seconds = Number(both & 0x3ffffffffn);
    } else {
      nanoseconds = bytes.readUInt32BE();
      seconds = Number(bytes.readBigInt64BE(4));
    }
    return new Date(seconds * 1000 + nanoseconds / 1e6).toISOString();
  }
}

export function decode(buffer) {
  const decoder = new Decoder(buffer);
  const value = decoder.value();
  if (decoder.at !== buffer.length) throw new Error("msgpack: bytes after the message");
  return value;
}

/** The values of a message that has several, one after the other. */
export function decodeAll(buffer) {
  const decoder = new Decoder(buffer), values = [];
  while (decoder.at < buffer.length) values.push(decoder.value());
  return values;
}
