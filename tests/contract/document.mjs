// The OpenAPI document of a gateway: finds the operation of a request, and checks responses against it.
import assert from "node:assert/strict";

import { createConfig, lintFromString } from "@redocly/openapi-core";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const methods = ["get", "head", "post", "put", "patch", "delete"];

/** Findings of the linter: [{ rule, message, where }]. */
export async function lint(text) {
  const config = await createConfig({ extends: ["recommended"], rules: { "no-ambiguous-paths": "off", "operation-4xx-response": "off" } });
  const problems = await lintFromString({ source: text, absoluteRef: "/openapi.json", config });
  return problems.map(({ ruleId, message, location: [at] }) => ({ rule: ruleId, message, where: at?.pointer }));
}

export class Document {
  constructor(json) {
    this.json = json;
    this.ajv = new Ajv2020.default({ strict: false, allErrors: true });
    addFormats.default(this.ajv);
    this.ajv.addSchema(json, "doc");
    this.operations = Object.entries(json.paths).flatMap(([path, item]) => methods.filter((method) => item[method]).map((method) => ({
      ...item[method], path, method: method.toUpperCase(), pointer: `/paths/${path.replaceAll("~", "~0").replaceAll("/", "~1")}/${method}`,
      pattern: new RegExp(`^${path.split("/").map((part) => part.startsWith("{") ? part === "{name}" && path.includes("packets") ? ".+" : "[^/]+" : part.replace(".", "\\.")).join("/")}$`),
    })));
    // The most literal path wins, as in a router.
    this.operations.sort((a, b) => (a.path.match(/\{/g) ?? []).length - (b.path.match(/\{/g) ?? []).length);
  }

  find(method, target) {
    const path = target.split("?")[0];
    return this.operations.find((operation) => operation.method === method && operation.pattern.test(path));
  }

  /** Asserts that the document allows the response, member by member. Returns the operation. */
  check(method, target, { status, headers, text, json }) {
    const operation = this.find(method, target);
    assert.ok(operation, `${method} ${target} is not documented`);
    const what = `${operation.operationId} ${status}: ${text?.slice(0, 600)}`;
    let response = operation.responses[status], pointer = `${operation.pointer}/responses/${status}`;
    assert.ok(response, `the status is not documented: ${what}`);
    if (response.$ref) {
      pointer = response.$ref.slice(1);
      response = pointer.split("/").slice(1).reduce((at, name) => at[name], this.json);
    }
    if (!response.content) return operation;
    const [[type, { schema }]] = Object.entries(response.content);
    const given = headers["content-type"]?.split(";")[0];
    if (type !== "*/*") assert.ok(given === type || (status === 401 && given === "application/problem+json"), `content type ${given}: ${what}`);
    if (type !== "application/json") return operation;
    assert.notEqual(json, undefined, `no JSON: ${what}`);
    const escaped = type.replaceAll("/", "~1");
    const validate = this.ajv.getSchema(`doc#${encodeURI(`${pointer}/content/${escaped}/schema`)}`) ?? this.ajv.compile(schema);
    assert.ok(validate(json), `${this.ajv.errorsText(validate.errors)}: ${what}`);
    return operation;
  }

  /** Asserts that the document allows the request's body. */
  checkBody(method, target, body) {
    const operation = this.find(method, target), content = operation?.requestBody?.content;
    if (body === undefined || !content?.["application/json"]) return;
    const validate = this.ajv.getSchema(`doc#${encodeURI(`${operation.pointer}/requestBody/content/application~1json/schema`)}`);
    assert.ok(validate(body), `${operation.operationId}: its body: ${this.ajv.errorsText(validate.errors)}`);
  }
}
