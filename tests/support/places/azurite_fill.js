// Loaded into azurite before it starts: puts many blobs into its collection, without a request for each.
//
// A request to the port FILL_PORT has the name of a blob that exists, and the names of its copies. AZURITE is the
// directory of azurite's program.
"use strict";

const { createServer } = require("http");
const Store = require(`${process.env.AZURITE}/persistence/LokiBlobMetadataStore.js`).default;

let store;
const init = Store.prototype.init;
Store.prototype.init = function () {
  store = this;
  return init.call(this);
};

createServer((request, answer) => {
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => {
    const { first, names } = JSON.parse(text);
    const blobs = store.db.getCollection(store.BLOBS_COLLECTION);
    const { $loki, meta, ...blob } = blobs.findOne({ name: first });
    blobs.insert(names.map((name) => ({ ...blob, name, properties: { ...blob.properties } })));
    answer.end();
  });
}).listen(Number(process.env.FILL_PORT), "127.0.0.1");
