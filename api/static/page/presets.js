/** Schemas to start from, each with a prompt that suits it. */

/** @typedef {{name: string, prompt: string, schema: object, maxTokens: number}} Preset */

const person = {
  title: "Person",
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 40 },
    age: { type: "integer", minimum: 0, maximum: 120 },
    city: { type: "string", minLength: 1, maxLength: 30 },
    hobbies: {
      type: "array",
      minItems: 2,
      maxItems: 4,
      items: {
        type: "object",
        properties: {
          hobby: { type: "string", minLength: 1, maxLength: 30 },
          level: { enum: ["beginner", "amateur", "expert"] },
        },
        required: ["hobby", "level"],
        additionalProperties: false,
      },
    },
    address: {
      type: "object",
      properties: {
        street: { type: "string", minLength: 1, maxLength: 40 },
        postal_code: { type: "string", minLength: 4, maxLength: 10 },
        country: { type: "string", minLength: 1, maxLength: 30 },
      },
      required: ["street", "country"],
      additionalProperties: false,
    },
  },
  required: ["name", "age", "city", "hobbies", "address"],
  additionalProperties: false,
};

const invoice = {
  title: "Invoice",
  type: "object",
  properties: {
    number: { type: "integer", minimum: 1, maximum: 99999 },
    customer: { type: "string", minLength: 1, maxLength: 30 },
    currency: { enum: ["EUR", "USD", "GBP"] },
    lines: {
      type: "array",
      minItems: 1,
      maxItems: 5,
      items: {
        type: "object",
        properties: {
          description: { type: "string", minLength: 1, maxLength: 60 },
          quantity: { type: "integer", minimum: 1, maximum: 100 },
          unit_price: { type: "number", minimum: 0, maximum: 10000 },
        },
        required: ["description", "quantity", "unit_price"],
        additionalProperties: false,
      },
    },
    payment: {
      anyOf: [
        {
          title: "Card",
          type: "object",
          properties: { method: { const: "card" }, last_digits: { type: "string", minLength: 4, maxLength: 4 } },
          required: ["method", "last_digits"],
          additionalProperties: false,
        },
        {
          title: "Bank transfer",
          type: "object",
          properties: { method: { const: "transfer" }, bank: { type: "string", minLength: 1, maxLength: 30 } },
          required: ["method", "bank"],
          additionalProperties: false,
        },
      ],
    },
    paid: { type: "boolean" },
    note: { type: ["string", "null"], maxLength: 100 },
  },
  required: ["number", "customer", "currency", "lines", "payment", "paid", "note"],
  additionalProperties: false,
};

const tree = {
  title: "Family tree",
  $ref: "#/$defs/person",
  $defs: {
    person: {
      type: "object",
      properties: {
        name: { type: "string", minLength: 1, maxLength: 30 },
        born: { type: "integer", minimum: 1800, maximum: 2025 },
        children: { type: "array", maxItems: 3, items: { $ref: "#/$defs/person" } },
      },
      required: ["name", "born", "children"],
      additionalProperties: false,
    },
  },
};

const review = {
  title: "Product review",
  type: "object",
  properties: {
    product: { type: "string", minLength: 1, maxLength: 40 },
    rating: { type: "integer", minimum: 1, maximum: 5, description: "One is poor, five is excellent." },
    sentiment: { enum: ["positive", "mixed", "negative"] },
    recommends: { type: "boolean" },
    summary: { type: "string", minLength: 20, maxLength: 200 },
    aspects: {
      type: "array",
      minItems: 1,
      maxItems: 4,
      items: {
        title: "Aspect",
        type: "object",
        properties: {
          aspect: { enum: ["quality", "price", "delivery", "design"] },
          opinion: { enum: ["good", "fair", "bad"] },
        },
        required: ["aspect", "opinion"],
        additionalProperties: false,
      },
    },
    reply: { type: "string", maxLength: 120, description: "What the shop answers, if it does." },
  },
  required: ["product", "rating", "sentiment", "recommends", "summary", "aspects"],
  additionalProperties: false,
};

/** @type {Preset[]} */
export const PRESETS = [
  {
    name: "Person",
    schema: person,
    maxTokens: 512,
    prompt:
      "Marina Costa is 34 and lives in Setúbal. Her hobbies are swimming (expert), pottery (amateur) and chess " +
      "(beginner). Her street is Rua do Sol 12 and her country is Portugal.",
  },
  {
    name: "Invoice",
    schema: invoice,
    maxTokens: 512,
    prompt:
      "Invoice 2041 for Hotel Bellevue: 24 sourdough loaves at 4.20 euros each and 60 almond croissants at 1.95 euros " +
      "each. It was paid by card; the last digits are 4417.",
  },
  {
    name: "Family tree",
    schema: tree,
    // A small model hardly ever stops a recursion; the limit brings the document to a close, and it stays valid.
    maxTokens: 160,
    prompt: "Ansel, born 1931, has two children: Ruth, born 1958, and Iris, born 1960. Ruth has a son, Tom, born 1984.",
  },
  {
    name: "Review",
    schema: review,
    maxTokens: 512,
    prompt:
      "Summarise this review: The lamp is beautiful and feels solid, but it came a week late and costs too much. " +
      "I would still buy it again.",
  },
];
