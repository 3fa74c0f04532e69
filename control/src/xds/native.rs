//! The resource of a proxy that requests the native module, a shared object, with its configuration.
//!
//! A proxy chooses the module by the name that it requests, because an Envoy can load only what its own filter declares
//! (`type_urls` of `config_discovery`). The document inside is the same for both modules.

use envoy_types::pb::envoy::config::core::v3::{AsyncDataSource, async_data_source};
use envoy_types::pb::envoy::config::core::v3::{DataSource, data_source};
use envoy_types::pb::envoy::extensions::dynamic_modules::v3::DynamicModuleConfig;
use envoy_types::pb::envoy::extensions::filters::http::dynamic_modules::v3::DynamicModuleFilter;
use envoy_types::pb::google::protobuf::Any;
use prost::{Message as _, Name as _};
use serde_json::{Value, json};

use super::document::{ROOT_ID, STRING_TYPE, text};

/// Where proxies find the shared object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeModule {
    /// `lib<name>.so` in the folder that Envoy's environment variable `ENVOY_DYNAMIC_MODULES_SEARCH_PATH` names.
    Named(String),
    /// A file on the proxy's machine.
    File(String),
}

impl NativeModule {
    /// Parses a setting: a text with a slash is a path, any other text a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.contains('/') {
            Self::File(text.to_owned())
        } else {
            Self::Named(text.to_owned())
        }
    }
}

/// Everything around the configuration of the native module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeTemplate {
    /// Names under which proxies request the native module; if empty, it is not served.
    pub names: Vec<String>,
    /// Where the module is.
    pub module: NativeModule,
}

impl NativeTemplate {
    /// The filter as a message.
    pub(super) fn typed_config(&self, config: &str) -> Any {
        let module = match &self.module {
            NativeModule::Named(name) => DynamicModuleConfig {
                name: name.clone(),
                ..DynamicModuleConfig::default()
            },
            NativeModule::File(path) => DynamicModuleConfig {
                module: Some(AsyncDataSource {
                    specifier: Some(async_data_source::Specifier::Local(DataSource {
                        specifier: Some(data_source::Specifier::Filename(path.clone())),
                        ..DataSource::default()
                    })),
                }),
                ..DynamicModuleConfig::default()
            },
        };
        let filter = DynamicModuleFilter {
            dynamic_module_config: Some(DynamicModuleConfig {
                // Otherwise Envoy unloads the module with the last configuration, and learned state is lost.
                do_not_close: true,
                ..module
            }),
            filter_name: ROOT_ID.to_owned(),
            filter_config: Some(text(config)),
            ..DynamicModuleFilter::default()
        };
        Any {
            type_url: DynamicModuleFilter::type_url(),
            value: filter.encode_to_vec(),
        }
    }

    /// The filter as JSON, for an Envoy whose configuration is a file.
    #[must_use]
    pub fn json(&self, config: &str) -> Value {
        let mut module = match &self.module {
            NativeModule::Named(name) => json!({"name": name}),
            NativeModule::File(path) => json!({"module": {"local": {"filename": path}}}),
        };
        if let Some(fields) = module.as_object_mut() {
            fields.insert("do_not_close".to_owned(), Value::from(true));
        }
        json!({
            "@type": DynamicModuleFilter::type_url(),
            "dynamic_module_config": module,
            "filter_name": ROOT_ID,
            "filter_config": {"@type": STRING_TYPE, "value": config},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(module: &str) -> NativeTemplate {
        NativeTemplate {
            names: vec!["tidegate-native".to_owned()],
            module: NativeModule::parse(module),
        }
    }

    fn decoded(template: &NativeTemplate) -> DynamicModuleFilter {
        let any = template.typed_config("{}");
        assert_eq!(any.type_url, DynamicModuleFilter::type_url());
        DynamicModuleFilter::decode(&*any.value).unwrap()
    }

    #[test]
    fn a_path_is_told_from_a_name_and_what_was_learned_is_kept() {
        for (text, name, is_file) in [("tidegate", "tidegate", false), ("/a/b.so", "", true)] {
            let template = template(text);

            let config = decoded(&template).dynamic_module_config.unwrap();

            assert_eq!((&*config.name, config.module.is_some()), (name, is_file));
            assert!(config.do_not_close);
            let json = template.json("{}");
            assert_eq!(json["dynamic_module_config"]["do_not_close"], true);
        }
    }
}
