// A lock of node-redlock, obeying a line for each command: `lock RESOURCE TTL`, `unlock`.
//
// node redlock.js PACKAGE HOST:PORT...

'use strict';

const [name, ...addresses] = process.argv.slice(2);
const path = require('path');
const { readFileSync } = require('fs');
const readline = require('readline');
const Redis = require('ioredis');
const module_ = require(name);
// Version 4 is the class itself, version 5 has it as its default.
const Redlock = module_.default || module_;

const clients = addresses.map((address) => {
  const [host, port] = address.split(':');
  return new Redis({ host, port: Number(port) });
});
// One attempt, like `try_lock`; everything else as it comes.
const redlock = new Redlock(clients, { retryCount: 0 });
// Both versions tell of a refusal here, too; without a listener that would end the process.
redlock.on('clientError', () => {});
redlock.on('error', () => {});

const version = (name) =>
  JSON.parse(readFileSync(path.join(__dirname, 'node_modules', name, 'package.json'))).version.replace(/^v/, '');

let held;

async function obey(line) {
  const [command, resource, ttl] = line.split(' ');
  try {
    if (command === 'lock') {
      // Version 5 takes a list of resources; with a list of one, version 4 does what it does with one.
      held = await redlock.acquire([resource], Number(ttl));
      return `held ${held.value}`;
    }
    await redlock.release(held);
    return 'released';
  } catch (error) {
    return `refused ${error.message}`.replace(/\s+/g, ' ');
  }
}

async function main() {
  console.log(`node-redlock ${version(name)} with ioredis ${version('ioredis')} on node ${process.version}`);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(await obey(line));
  }
  clients.forEach((client) => client.disconnect());
}

main();
